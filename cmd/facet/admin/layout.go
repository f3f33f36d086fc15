package admin

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"facet/node/wire"
)

const (
	// columns is the most columns of a line, unless a single word is longer.
	columns = 100
	// limitMax and limitMin bound the characters that a cell with a name may have. A longer
	// name loses its middle.
	limitMax, limitMin = 64, 8
	gap                = 2 // columns between two cells
)

// row is a line of a table. Its list is written behind the cells, with line breaks between its
// items where the line would be too long.
type row struct {
	cells []string
	list  []string
}

// writeTable writes the rows that build returns for the greatest limit of names with which they
// fit into the columns.
func writeTable(w io.Writer, build func(limit int) []row) error {
	var rows []row
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
		for i, cell := range r.cells {
			b.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
		}
		indent := utf8.RuneCountInString(b.String())
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String()+wrap(r.list, ", ", indent), " ")); err != nil {
			return err
		}
	}
	return nil
}

// measure returns the widths of the columns of cells, and whether all rows fit.
func measure(rows []row) (widths []int, fits bool) {
	longest := -gap
	for _, r := range rows {
		for i, cell := range r.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
		for _, item := range r.list {
			longest = max(longest, utf8.RuneCountInString(item)+len(","))
		}
	}
	total := longest
	for _, width := range widths {
		total += width + gap
	}
	return widths, total <= columns
}

// wrap joins items with sep. Lines after the first are indented, as the first one is already.
func wrap(items []string, sep string, indent int) string {
	var b strings.Builder
	at := indent
	for i, item := range items {
		if i < len(items)-1 {
			item += sep
		}
		width := utf8.RuneCountInString(strings.TrimRight(item, " "))
		if i > 0 && at+width > columns {
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

// writeMarked writes text behind a mark of one column, broken between words.
func writeMarked(w io.Writer, mark, format string, args ...any) error {
	_, err := fmt.Fprintln(w, mark, wrap(strings.Fields(fmt.Sprintf(format, args...)), " ", gap))
	return err
}

// shorten returns text without its middle if it has more than limit characters.
func shorten(text string, limit int) string {
	letters := []rune(text)
	if len(letters) <= limit {
		return text
	}
	head := limit / 2
	return string(letters[:head]) + "…" + string(letters[len(letters)-(limit-head-1):])
}

// nodeID is the id of a node, or of its member with the epoch.
var nodeID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(\.[0-9a-f]{8})?`)

// named returns a text with names in place of the ids of nodes. Nodes that share a name keep
// their ids.
func named(text string, s wire.Status) string {
	byID := map[string]string{}
	count := map[string]int{}
	for _, n := range s.Nodes {
		byID[n.ID.String()] = n.Name
		count[n.Name]++
	}
	text = nodeID.ReplaceAllStringFunc(text, func(id string) string {
		bare, _, _ := strings.Cut(id, ".")
		if name := byID[bare]; name != "" && count[name] == 1 {
			return name
		}
		return id
	})
	for name := range count {
		text = strings.ReplaceAll(text, name+" ("+name+")", name) // "node n1 (ID)"
	}
	return text
}
