package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"facet/router"
)

// object contains the members of a JSON object that an operation knows. The raw
// values alias the body. A member that is null counts as absent.
type object map[string]jsontext.Value

// errBounds is returned when a body nests too deep or has too many values.
var errBounds = errors.New("the body nests too deep or has too many values")

// readObject reads a body that is one JSON object and keeps the known members. It
// refuses doubled keys (on any level), invalid UTF-8 and anything after the object.
// It checks and skips unknown members.
func readObject(text []byte, known ...string) (object, error) {
	return readOutline(outlineOf(text), known)
}

func readOutline(whole outline, known []string) (object, error) {
	o := make(object, len(known))
	// On a bytes.Buffer the decoder works in place: nothing large is copied.
	d := &boundedDecoder{Decoder: jsontext.NewDecoder(bytes.NewBuffer(whole.text)), left: jsonTokensMax}
	if d.PeekKind() != '{' {
		return nil, invalid("", "The body must be a JSON object.")
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, malformed(err)
	}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, malformed(err)
		}
		name := token.String()
		start := int(d.InputOffset())
		null := d.PeekKind() == 'n'
		if err := d.skip(); err != nil {
			return nil, malformed(err)
		}
		for _, k := range known {
			if k == name && !null {
				o[k] = jsontext.Value(bytes.TrimLeft(whole.slice(start, int(d.InputOffset())), ": \t\r\n"))
			}
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, malformed(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, invalid("", "The body must be one JSON object.")
	}
	return o, nil
}

// malformed returns the answer to a body that is not JSON. The decoder's own text
// may quote the body, so it is not passed on.
func malformed(err error) error {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return invalid("", "The body has a doubled key.")
	case errors.Is(err, errBounds):
		return invalid("", "The body nests too deep or has too many values.")
	}
	return invalid("", "The body is not valid JSON.")
}

// boundedDecoder reads JSON no deeper than nestingMax and up to a number of tokens.
type boundedDecoder struct {
	*jsontext.Decoder
	left int
}

// skip reads one value, whatever it is.
func (d *boundedDecoder) skip() error {
	depth := d.StackDepth()
	for {
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		d.left--
		if d.StackDepth() > nestingMax || d.left < 0 {
			return errBounds
		}
		if d.StackDepth() == depth {
			return nil
		}
	}
}

// bounds is a closed interval.
type bounds struct{ min, max int }

// integer reads a whole number within b, or returns absent when the member is
// missing. 10.0 and 1e1 are 10; "10", 1.5 and true are refused.
func (o object) integer(name string, b bounds, absent int) (int, error) {
	raw, ok := o[name]
	if !ok {
		return absent, nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if raw.Kind() != '0' || err != nil || n != math.Trunc(n) || n < float64(b.min) || n > float64(b.max) {
		return 0, invalid("", fmt.Sprintf("%s must be a whole number from %d to %d.", name, b.min, b.max))
	}
	return int(n), nil
}

// number reads a required number between least and most.
func (o object) number(name string, least, most float64) (float64, error) {
	raw, ok := o[name]
	if !ok {
		return 0, missing(name)
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if raw.Kind() != '0' || err != nil || n < least || n > most {
		return 0, invalid("", fmt.Sprintf("%s must be a number from %g to %g.", name, least, most))
	}
	return n, nil
}

// boolean reads true or false. A missing member is false.
func (o object) boolean(name string) (bool, error) {
	raw, ok := o[name]
	if !ok {
		return false, nil
	}
	switch raw.Kind() {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	default:
		return false, invalid("", name+" must be true or false.")
	}
}

// text reads a string of at most most characters. ok is false when the member is
// missing.
func (o object) text(name string, most int) (s string, ok bool, err error) {
	raw, ok := o[name]
	if !ok {
		return "", false, nil
	}
	if raw.Kind() != '"' {
		return "", false, invalid("", name+" must be a string.")
	}
	// A character takes at most 12 bytes of JSON (a surrogate pair).
	if len(raw) > 12*most+2 {
		return "", false, invalid("", fmt.Sprintf("%s must be at most %d characters.", name, most))
	}
	plain, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", false, malformed(err)
	}
	if utf8.RuneCount(plain) > most {
		return "", false, invalid("", fmt.Sprintf("%s must be at most %d characters.", name, most))
	}
	return string(plain), true, nil
}

// image reads a required base64 image. It decodes in place and overwrites the text
// in the body, so a member can be read only once.
func (o object) image(name string) ([]byte, error) {
	raw, ok := o[name]
	if !ok {
		return nil, missing(name)
	}
	return imageOf(name, raw)
}

// imageOf reads the image of a member, as image does.
func imageOf(name string, raw jsontext.Value) ([]byte, error) {
	if raw.Kind() != '"' {
		return nil, invalid("", name+" must be a string, a base64 image.")
	}
	text := []byte(raw[1 : len(raw)-1])
	if bytes.IndexByte(text, '\\') >= 0 {
		plain, err := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw)
		if err != nil {
			return nil, malformed(err)
		}
		text = text[:copy(text, plain)] // in the body, which is cleared after the answer
		clear(plain)
	}
	image, ok := decodeBase64(text)
	if !ok || len(image) == 0 {
		return nil, invalid(router.ReasonImage, name+" is not a base64 image.")
	}
	return image, nil
}

// tags reads an optional array of names. It drops repeats and returns nil when the
// member is missing.
func (o object) tags() ([]string, error) {
	raw, ok := o["tags"]
	if !ok {
		return nil, nil
	}
	if raw.Kind() != '[' {
		return nil, invalid("", "tags must be an array of strings.")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if _, err := d.ReadToken(); err != nil {
		return nil, malformed(err)
	}
	tags := []string{}
	seen := make(map[string]bool)
	for d.PeekKind() != ']' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, malformed(err)
		}
		if token.Kind() != '"' {
			return nil, invalid("", "tags must be an array of strings.")
		}
		tag := token.String()
		if n := utf8.RuneCountInString(tag); n == 0 || n > tagMax {
			// No tag can have this name (D31), so it is an unknown one.
			return nil, invalid(router.ReasonUnknownTag, fmt.Sprintf("A tag has 1 to %d characters.", tagMax))
		}
		if seen[tag] {
			continue
		}
		if len(tags) == tagsMax {
			return nil, invalid(router.ReasonUnknownTag, fmt.Sprintf("A gallery has at most %d tags.", tagsMax))
		}
		seen[tag] = true
		tags = append(tags, tag)
	}
	return tags, nil
}

// missing returns the answer to a body without a required member.
func missing(name string) *failure { return invalid("", name+" is required.") }
