package httpapi

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A body is an image in a string and a few short members. A JSON parser looks at
// each byte of it, at a fifth of the speed of bytes.IndexByte. So the parser gets
// an outline of the body, in which long plain strings are empty. Everything else
// is kept, and the parser applies all its rules to it.
//
//	body     {"probe":"/9j/4AAQSkZJRgABAQAAAQAB…","limit":5}
//	outline  {"probe":"","limit":5}
//
// The strings left out can't change the parser's result, for three reasons:
//   - A text without a backslash has no escaped quotation mark, so each string
//     lies between an odd quotation mark and the next one.
//   - The strings are printable ASCII, which is valid in every JSON string.
//   - They follow a colon, so they are values. Only names must differ.
const (
	outlineMin   = 4 << 10 // bytes of the shortest string that is left out
	outlinePairs = 1 << 10 // pairs of quotation marks that are searched
)

// outline is a body without its long strings.
type outline struct {
	body, text []byte // text is body itself when nothing was left out
	cuts       []cut
}

// cut is a string that was left out.
type cut struct{ start, end int } // its bytes of the body, without the quotation marks

// byteOrderMark precedes the texts of some programs.
const byteOrderMark = "\ufeff"

// outlineOf returns the outline of a body. It leaves out a byte order mark.
func outlineOf(body []byte) outline {
	body = bytes.TrimPrefix(body, []byte(byteOrderMark))
	o := outline{body: body, text: body}
	if len(body) < outlineMin || bytes.IndexByte(body, '\\') >= 0 {
		return o
	}
	at := 0
	for range outlinePairs {
		start, end, ok := nextString(body, at)
		if !ok {
			break
		}
		before := bytes.TrimRight(body[at:start-1], " \t\r\n")
		if end-start >= outlineMin && bytes.HasSuffix(before, []byte(":")) && isPlain(body[start:end]) {
			o.cuts = append(o.cuts, cut{start, end})
		}
		at = end + 1
	}
	if len(o.cuts) == 0 {
		return o
	}
	o.text = nil
	at = 0
	for _, c := range o.cuts {
		o.text = append(o.text, body[at:c.start]...)
		at = c.end
	}
	o.text = append(o.text, body[at:]...)
	return o
}

// nextString returns the bounds of the text between the next two quotation marks.
func nextString(body []byte, at int) (start, end int, ok bool) {
	n := bytes.IndexByte(body[at:], '"')
	if n < 0 {
		return 0, 0, false
	}
	start = at + n + 1
	n = bytes.IndexByte(body[start:], '"')
	return start, start + n, n >= 0
}

// slice returns the part of the body that became text[start:end]. Neither start nor end
// may lie in a string.
func (o *outline) slice(start, end int) []byte {
	return o.body[o.origin(start):o.origin(end)]
}

// origin returns where a byte of the text lies in the body.
func (o *outline) origin(at int) int {
	for _, c := range o.cuts {
		if at < c.start {
			break
		}
		at += c.end - c.start
	}
	return at
}

// isPlain reports whether text is ASCII without control characters (DEL counts as
// none, as in JSON).
func isPlain(text []byte) bool {
	return !hasBelow(text, ' ') && isASCII(text)
}

const (
	ones = 0x0101_0101_0101_0101
	tops = 0x8080_8080_8080_8080
)

// hasBelow reports whether a byte of text is less than least, which is at most 128.
// It takes eight bytes at a time: a byte below least borrows into its top bit
// (Warren, Hacker's Delight, 2nd ed., §6-1).
func hasBelow(text []byte, least byte) bool {
	for len(text) >= 32 {
		a, b := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
		c, d := binary.LittleEndian.Uint64(text[16:]), binary.LittleEndian.Uint64(text[24:])
		n := ones * uint64(least)
		if ((a-n)&^a|(b-n)&^b|(c-n)&^c|(d-n)&^d)&tops != 0 {
			return true
		}
		text = text[32:]
	}
	return slices.ContainsFunc(text, func(c byte) bool { return c < least })
}

// isASCII reports whether no byte of text has its top bit set.
func isASCII(text []byte) bool {
	for len(text) >= 32 {
		all := binary.LittleEndian.Uint64(text) | binary.LittleEndian.Uint64(text[8:]) |
			binary.LittleEndian.Uint64(text[16:]) | binary.LittleEndian.Uint64(text[24:])
		if all&tops != 0 {
			return false
		}
		text = text[32:]
	}
	return !slices.ContainsFunc(text, func(c byte) bool { return c >= 0x80 })
}
