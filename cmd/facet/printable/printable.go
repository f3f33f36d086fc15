// Package printable makes text that people typed safe to show: on a terminal, and in a program for
// tables.
package printable

import (
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns text without characters that change what a terminal shows: control characters
// except tab and line feed, line and paragraph separators, and characters that change the direction
// of the text around them. Each becomes its escape, for example \u001b, which JSON reads as the
// same character. Bytes that are not UTF-8 become U+FFFD.
func Text(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, isHidden) {
		return text
	}
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, r := range text {
		if !isHidden(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(digits[r>>shift&0xf])
		}
	}
	return b.String()
}

// isHidden reports whether a terminal shows r as something other than a character. No such
// character needs more than 16 bits.
func isHidden(r rune) bool {
	return r != '\t' && r != '\n' && unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// Writer writes to W what Text returns for each write, so a character must not be split between two
// writes.
type Writer struct{ W io.Writer }

// Write writes text to w.W. It reports len(text) bytes if all is written, and 0 otherwise.
func (w Writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.W, Text(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Raw returns what w writes to if w is a Writer, and w otherwise. It is for the control characters
// of the program itself.
func Raw(w io.Writer) io.Writer {
	if safe, ok := w.(Writer); ok {
		return safe.W
	}
	return w
}

// Row returns the cells of a CSV file's row as Text does, with an apostrophe before each
// that a program for tables would run as a formula.
func Row(cells []string) []string {
	cells = slices.Clone(cells)
	for i, cell := range cells {
		if cell = Text(cell); cell != "" && strings.ContainsRune("=+-@\t\r＝＋－＠", []rune(cell)[0]) {
			cell = "'" + cell
		}
		cells[i] = cell
	}
	return cells
}
