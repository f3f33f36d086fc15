package list

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

const columnsMax = 256

// separators are between the fields of a line. German and French spreadsheets write
// semicolons.
var separators = []rune{',', ';', '\t'}

// fields are the columns that an import reads, and how they are stored in a row.
var fields = map[string]func(r *Row, cell string){
	"externalid": func(r *Row, cell string) { r.ExternalID = cell },
	"file":       func(r *Row, cell string) { r.File = cell },
	"filename":   func(r *Row, cell string) { r.File = cell },
	"tags":       func(r *Row, cell string) { r.setTags(cell) },
	"userdata":   func(r *Row, cell string) { r.setUserData(cell) },
	"expires":    func(r *Row, cell string) { r.Err = r.setExpires(cell) },
}

// fieldName returns the key of fields for the name of a column: external_id, externalId
// and "External ID" are one.
func fieldName(title string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(title))
}

// columns is the header of a list.
type columns struct {
	separator rune
	titles    []string
	set       []func(*Row, string) // nil: the column is not read
}

// ignored returns the titles of the columns that are not read.
func (c *columns) ignored() (titles []string) {
	for i, set := range c.set {
		if set == nil && c.titles[i] != "" {
			titles = append(titles, c.titles[i])
		}
	}
	return titles
}

// readColumns reads the header: the first line, or the second behind Excel's "sep=;".
func readColumns(l *lines) (*columns, error) {
	line, bad, err := l.next()
	if text, found := strings.CutPrefix(string(line), "sep="); found && len(text) == 1 {
		line, bad, err = l.next()
	}
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the list is empty: its first line names the columns, such as external_id,file,tags")
	}
	if err = errors.Join(err, bad); err != nil {
		return nil, err
	}
	for _, separator := range separators {
		titles, err := split(line, separator)
		if err != nil || len(titles) > columnsMax {
			continue
		}
		c := &columns{separator: separator, titles: titles}
		var has Row
		seen := map[string]bool{}
		for i, title := range titles {
			titles[i] = strings.TrimSpace(title)
			name := fieldName(titles[i])
			set := fields[name]
			if set != nil && seen[name] {
				return nil, fmt.Errorf("two columns of the list are called %q", titles[i])
			}
			seen[name] = true
			if c.set = append(c.set, set); set != nil {
				set(&has, "x")
			}
		}
		if has.File != "" {
			return c, nil
		}
	}
	return nil, errors.New("the first line of the list must name its columns, one of them \"file\": external_id,file,tags,user_data,expires, " +
		"with commas, semicolons or tabs between them")
}

// split returns the fields of a line, or nil for a blank one.
func split(line []byte, separator rune) ([]string, error) {
	r := csv.NewReader(bytes.NewReader(line))
	r.Comma, r.FieldsPerRecord = separator, -1
	cells, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		if errors.Is(parse.Err, csv.ErrQuote) {
			return nil, errors.New(`a quoted field does not end on its line, or has text behind it: write "" for a quotation mark, and each row on one line`)
		}
		return nil, errors.New(`there is a quotation mark in a field that is not quoted: quote the field, and write "" for the mark`)
	}
	return cells, err
}

// row returns the row of a line. blank reports that the line has no content.
func (c *columns) row(line []byte) (r Row, blank bool) {
	cells, err := split(line, c.separator)
	if err != nil {
		return Row{Err: err}, false
	}
	filled := 0
	for i, cell := range cells {
		if strings.TrimSpace(cell) != "" {
			filled = i + 1
		}
	}
	if filled == 0 {
		return r, true
	}
	for i, cell := range cells[:min(len(cells), len(c.set))] {
		if c.set[i] != nil {
			c.set[i](&r, cell)
		}
	}
	if len(cells) < len(c.set) || filled > len(c.set) {
		r.Err = fmt.Errorf("the row has %d fields, the first line %d: quote a field that contains %q", len(cells), len(c.set), c.separator)
		return r, false
	}
	r.check()
	return r, false
}
