package signature

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"

	"facet/node/sigv4"
)

// requestMax is the most bytes of a request that are read: the largest body that a node takes, and
// its headers.
const requestMax = 41 << 20

// Parts is a request in parts, in place of its whole text.
type Parts struct {
	Method, URL string
	Headers     []string // "name: value"
}

// ReadBody reads a body.
func ReadBody(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, requestMax+1))
	if err == nil && len(b) > requestMax {
		err = fmt.Errorf("it has more than %d MiB", requestMax>>20)
	}
	return b, err
}

// Read reads a request: its text as it goes over the wire, or the output of "curl -v", whose lines
// of the request start with "> " and which has no body. A nil body is taken from the text.
func Read(r io.Reader, body []byte) (s sigv4.Sent, err error) {
	text, err := ReadBody(r)
	if err != nil {
		return s, fmt.Errorf("read the request: %w", err)
	}
	text = ofCurl(text)
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	// Versions of HTTP differ in nothing that a signature covers.
	if at := bytes.LastIndex(first, []byte(" HTTP/")); at >= 0 {
		first = append(first[:at:at], " HTTP/1.1"...)
	}
	in := bufio.NewReader(io.MultiReader(bytes.NewReader(first), strings.NewReader("\r\n"), bytes.NewReader(rest)))
	q, err := http.ReadRequest(in)
	if err != nil { // its text has the whole line, that of a photo for example
		return s, fmt.Errorf("this is not the text of a request, with a first line like \"POST /v1.1/subjects HTTP/1.1\": %.120s", err.Error())
	}
	s.Method, s.Target = q.Method, q.RequestURI
	if q.Host != "" {
		s.Headers = append(s.Headers, sigv4.Header{Name: "Host", Value: q.Host})
	}
	for name, values := range q.Header {
		for _, v := range values {
			s.Headers = append(s.Headers, sigv4.Header{Name: name, Value: v})
		}
	}
	if s.Body = body; body != nil {
		return s, nil
	}
	if q.ContentLength == 0 {
		s.Body, err = io.ReadAll(in)
		return s, err
	}
	s.Body, err = io.ReadAll(q.Body)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return s, fmt.Errorf("the request's body has %d bytes by its headers, and %d are here: name the file with the body with --body-file", q.ContentLength, len(s.Body))
	}
	return s, err
}

// ofCurl returns the lines of the request in the output of "curl -v", or else text itself.
func ofCurl(text []byte) []byte {
	var lines []byte
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("> "))
		if ok {
			lines = append(lines, rest...)
		}
		if len(lines) > 0 && len(bytes.TrimSpace(rest)) == 0 {
			break
		}
	}
	if len(lines) == 0 {
		return text
	}
	return append(bytes.TrimRight(lines, "\r\n"), "\r\n\r\n"...)
}

// Request returns the request of its parts.
func (p Parts) Request(body []byte) (s sigv4.Sent, err error) {
	_, rest, ok := strings.Cut(p.URL, "://")
	if !ok || p.Method == "" {
		return s, errors.New("--url needs a whole URL, https://HOST/PATH, and --method the method")
	}
	host, target := rest, "/"
	if at := strings.IndexAny(rest, "/?"); at >= 0 {
		host, target = rest[:at], rest[at:]
	}
	if target[0] == '?' {
		target = "/" + target
	}
	target, _, _ = strings.Cut(target, "#")
	s.Method, s.Target, s.Body, s.Hosts = p.Method, target, body, []string{host}
	for _, h := range p.Headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return s, fmt.Errorf("--header %.40q is not NAME: VALUE", h)
		}
		s.Headers = append(s.Headers, sigv4.Header{Name: textproto.TrimString(name), Value: textproto.TrimString(value)})
	}
	for _, h := range s.Headers {
		if strings.EqualFold(h.Name, "host") {
			return s, nil
		}
	}
	s.Headers = append(s.Headers, sigv4.Header{Name: "Host", Value: host})
	return s, nil
}
