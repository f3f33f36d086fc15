package httpapi

import (
	"bytes"
	"strings"

	"github.com/segmentio/asm/base64"
)

// dataPrefixMax is the most bytes that may precede the comma of a data URL.
const dataPrefixMax = 256

// decodeBase64 decodes text in place: the returned slice aliases text. It accepts a
// "data:…;base64," prefix, ASCII white space, either alphabet (not both mixed), and
// padding or none (D14).
func decodeBase64(text []byte) (plain []byte, ok bool) {
	text, ok = cutDataPrefix(text)
	if !ok {
		return nil, false
	}
	text = squeeze(text)
	padded := len(text)
	text = bytes.TrimRight(text, "=")
	switch padding := padded - len(text); {
	case padding > 2, padding > 0 && padded%4 != 0:
		return nil, false
	}
	encoding := base64.RawStdEncoding
	if holdsAny(text, "-_") {
		if holdsAny(text, "+/") { // the decoder takes '/' for '_'
			return nil, false
		}
		encoding = base64.RawURLEncoding
	}
	// Decoding in place is safe: the decoder reads a block before it writes the shorter
	// result, which ends within that block.
	n, err := encoding.Decode(text, text)
	return text[:n], err == nil
}

// cutDataPrefix cuts off the prefix of a data URL, and white space before it. ok is false when the prefix does
// not announce base64.
func cutDataPrefix(text []byte) (rest []byte, ok bool) {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) < 5 || !strings.EqualFold(string(text[:5]), "data:") {
		return text, true
	}
	comma := bytes.IndexByte(text[:min(len(text), dataPrefixMax)], ',')
	if comma < 0 || !bytes.HasSuffix(bytes.ToLower(text[:comma]), []byte(";base64")) {
		return nil, false
	}
	return text[comma+1:], true
}

// squeeze removes ASCII white space in place.
func squeeze(text []byte) []byte {
	if !hasBelow(text, ' '+1) {
		return text
	}
	kept := text[:0]
	for _, c := range text {
		switch c {
		case ' ', '\t', '\r', '\n', '\f', '\v':
		default:
			kept = append(kept, c)
		}
	}
	return kept
}

// holdsAny reports whether text contains any of few characters. One search for each
// of them is many times as fast as bytes.ContainsAny, which looks at byte after
// byte.
func holdsAny(text []byte, few string) bool {
	for i := range len(few) {
		if bytes.IndexByte(text, few[i]) >= 0 {
			return true
		}
	}
	return false
}
