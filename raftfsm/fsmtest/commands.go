package fsmtest

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"facet/internal/codec"
	"facet/raftfsm/command"
)

// Encode returns the bytes of c, a command of table.
func Encode[M any](table []command.Row[M], c any) []byte {
	for _, row := range table {
		if row.Type == reflect.TypeOf(c) {
			return codec.Encode(row.Head, c)
		}
	}
	panic(fmt.Sprintf("bug: %T is no command of this machine", c))
}

// Decode reads a command of table. Its error wraps codec.ErrMalformed.
func Decode[M any](table []command.Row[M], b []byte) (any, error) {
	message, err := codec.Split(b)
	if err != nil {
		return nil, err
	}
	if int(message.Code) >= len(table) || table[message.Code].Type == nil {
		return nil, fmt.Errorf("%w: unknown command %d", codec.ErrMalformed, message.Code)
	}
	row := table[message.Code]
	c := reflect.New(row.Type)
	if err := message.Decode(row.Head, c.Interface()); err != nil {
		return nil, err
	}
	return c.Elem().Interface(), nil
}

// Documented returns the codes in a section of docs/formats/commands.md.
func Documented(t testing.TB, section string) (codes []int) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "formats", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), section)
	part, _, _ = strings.Cut(part, "\n## ")
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(part, -1) {
		code, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, code)
	}
	return codes
}

// CheckCodes fails t if the index of a row in table is not the row's code, if the code has the
// bit 0x40, which marks an answer, or if the section documents other codes.
func CheckCodes[M any](t testing.TB, table []command.Row[M], section string) {
	t.Helper()
	var codes []int
	for code, row := range table {
		if row.Type == nil {
			continue
		}
		codes = append(codes, code)
		if int(row.Head.Code) != code || row.Head.Version == 0 || code&0x40 != 0 {
			t.Errorf("%v lies at %d and has code %d, version %d", row.Type, code, row.Head.Code, row.Head.Version)
		}
	}
	documented := Documented(t, section)
	documented = slices.DeleteFunc(documented, func(code int) bool { return code >= int(codec.Skippable) })
	if len(codes) == 0 || !slices.Equal(codes, documented) {
		t.Errorf("the table has the codes %d, and %q has %d", codes, section, documented)
	}
}
