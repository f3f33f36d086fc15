package httpapi

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/node/sigv4"
)

// head is the checked request line and headers. readHead refuses a head that two
// readers could understand differently, even if fasthttp's parser accepts it.
type head struct {
	method string
	target string // raw, in origin form
	path   string // raw path of target
	query  string // raw query of target
	// segments are the parts of the path between slashes, each decoded once.
	segments []string
	headers  []sigv4.Header // in the order received
	length   int            // declared bytes of the body, 0 when none is declared
	chunked  bool           // the body comes in chunks, without a declared length
}

// single lists the headers that may come only once. One reader would use the first
// copy and another the second.
var single = map[string]bool{
	"host": true, "authorization": true, "x-api-key": true, "idempotency-key": true, "if-match": true,
	"content-length": true, "transfer-encoding": true, "content-type": true, "expect": true, "origin": true,
	"x-amz-content-sha256": true, "x-cloud-content-sha256": true,
}

// readHead checks the head of a request whose body may have at most bodyBytes
// bytes.
func readHead(h *fasthttp.RequestHeader, bodyBytes int) (head, error) {
	return parseHead(string(h.Method()), string(h.RequestURI()), string(h.Protocol()), string(h.RawHeaders()), bodyBytes)
}

// parseHead does the work of readHead on plain text. raw is the header block with
// its empty last line.
func parseHead(method, target, protocol, raw string, bodyBytes int) (head, error) {
	h := head{method: method, target: target}
	if protocol != "HTTP/1.1" {
		return h, gateway(fasthttp.StatusHTTPVersionNotSupported, "Only HTTP/1.1 is served. A proxy in between has to speak it: nginx needs \"proxy_http_version 1.1;\".")
	}
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE":
	default:
		return h, badFrame("Unknown method.")
	}
	var err error
	if h.headers, err = parseHeaders(raw); err != nil {
		return h, err
	}
	if err := h.checkHeaders(bodyBytes); err != nil {
		return h, err
	}
	if err := h.originForm(); err != nil {
		return h, err
	}
	h.path, h.query, _ = strings.Cut(h.target, "?")
	h.segments, err = splitTarget(h.path, h.query)
	return h, err
}

// originForm cuts scheme and host off a target in absolute form, as clients send it to a proxy. The
// signature covers the rest.
func (h *head) originForm() error {
	rest, absolute := strings.CutPrefix(h.target, "https://")
	if !absolute {
		return nil
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if host, _ := h.header("host"); !strings.EqualFold(rest[:end], host) {
		return badFrame("The request target names another host than the Host header.")
	}
	if h.target = rest[end:]; !strings.HasPrefix(h.target, "/") {
		h.target = "/" + h.target
	}
	return nil
}

// parseHeaders splits a raw header block into lines of name and value. Folded
// lines, bare line feeds, control characters and bytes beyond ASCII are refused.
func parseHeaders(raw string) ([]sigv4.Header, error) {
	var list []sigv4.Header
	for {
		line, rest, ok := strings.Cut(raw, "\r\n")
		if !ok {
			return nil, badFrame("A header line does not end in CRLF.")
		}
		if line == "" {
			if rest != "" {
				return nil, badFrame("Malformed header.")
			}
			return list, nil
		}
		if len(list) == headersMax {
			return nil, gateway(fasthttp.StatusRequestHeaderFieldsTooLarge, "Too many headers.")
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) {
			return nil, badFrame("Malformed header.")
		}
		value = strings.Trim(value, " \t")
		for i := range len(value) {
			if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
				return nil, badFrame("A header has a character beyond printable ASCII.")
			}
		}
		list = append(list, sigv4.Header{Name: name, Value: value})
		raw = rest
	}
}

// checkHeaders applies the rules on headers and reads the declared length.
func (h *head) checkHeaders(bodyBytes int) error {
	seen := make(map[string]bool, len(h.headers))
	declared := ""
	for _, line := range h.headers {
		name := strings.ToLower(line.Name)
		switch name {
		case "transfer-encoding":
			if !strings.EqualFold(line.Value, "chunked") {
				return badFrame("Transfer-Encoding may be chunked only.")
			}
			h.chunked = true
		case "content-encoding":
			if !strings.EqualFold(line.Value, "identity") {
				return badFrame("Content-Encoding is not accepted: send the body uncompressed.")
			}
		case "trailer":
			return badFrame("Trailers are not accepted.")
		case "content-length":
			declared = line.Value
		}
		if single[name] && seen[name] {
			return badFrame("A header that may come once is repeated.")
		}
		seen[name] = true
	}
	if h.chunked && seen["content-length"] {
		return badFrame("Content-Length and Transfer-Encoding are not accepted together.")
	}
	if !seen["content-length"] {
		return nil
	}
	for _, c := range declared {
		if c < '0' || c > '9' {
			return badFrame("Content-Length is not a number.")
		}
	}
	if declared == "" {
		return badFrame("Content-Length is not a number.")
	}
	length, err := strconv.Atoi(declared)
	if err != nil || length > bodyBytes {
		return tooLarge()
	}
	h.length = length
	if length > 0 && !takesBody(h.method) {
		return unwantedBody()
	}
	return nil
}

// header returns the value of the first header called name (lower case).
func (h *head) header(name string) (value string, ok bool) {
	for _, line := range h.headers {
		if strings.EqualFold(line.Name, name) {
			return line.Value, true
		}
	}
	return "", false
}

// isToken reports whether s can be the name of a header (RFC 9110, §5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}
