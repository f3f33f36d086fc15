// Package table prints tables and texts for people, in lines of at most 100 columns.
package table

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// Columns is the most columns of a line, unless a single word is longer.
	Columns = 100
	// limitMax and limitMin bound the characters that a cell with a name may have. A longer
	// name loses its middle.
	limitMax, limitMin = 64, 8
	// Gap is the number of columns between two cells.
	Gap = 2
)

// Row is a line of a table. Its List is written behind the cells, with line breaks between its
// items where the line would be too long.
type Row struct {
	Cells []string
	List  []string
}

// Write writes the rows that build returns for the greatest limit of names with which they
// fit into the columns.
func Write(w io.Writer, build func(limit int) []Row) error {
	var rows []Row
	var widths []int
	for limit := limitMax; limit >= limitMin; limit-- {
		rows = build(limit)
		var fits bool
		if widths, fits = measure(rows); fits {
			break
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r.Cells {
			b.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+Gap))
		}
		indent := utf8.RuneCountInString(b.String())
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String()+Wrap(r.List, ", ", indent), " ")); err != nil {
			return err
		}
	}
	return nil
}

// measure returns the widths of the columns of cells, and whether all rows fit.
func measure(rows []Row) (widths []int, fits bool) {
	longest := -Gap
	for _, r := range rows {
		for i, cell := range r.Cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
		for _, item := range r.List {
			longest = max(longest, utf8.RuneCountInString(item)+len(","))
		}
	}
	total := longest
	for _, width := range widths {
		total += width + Gap
	}
	return widths, total <= Columns
}

// Wrap joins items with sep. Lines after the first are indented, as the first one is already.
func Wrap(items []string, sep string, indent int) string {
	var b strings.Builder
	at := indent
	for i, item := range items {
		if i < len(items)-1 {
			item += sep
		}
		width := utf8.RuneCountInString(strings.TrimRight(item, " "))
		if i > 0 && at+width > Columns {
			text := strings.TrimRight(b.String(), " ")
			b.Reset()
			b.WriteString(text + "\n" + strings.Repeat(" ", indent))
			at = indent
		}
		b.WriteString(item)
		at += utf8.RuneCountInString(item)
	}
	return b.String()
}

// WriteMarked writes text behind a mark of one column, broken between words.
func WriteMarked(w io.Writer, mark, format string, args ...any) error {
	_, err := fmt.Fprintln(w, mark, Wrap(strings.Fields(fmt.Sprintf(format, args...)), " ", Gap))
	return err
}

// Shorten returns text without its middle if it has more than limit characters.
func Shorten(text string, limit int) string {
	letters := []rune(text)
	if len(letters) <= limit {
		return text
	}
	head := limit / 2
	return string(letters[:head]) + "…" + string(letters[len(letters)-(limit-head-1):])
}
