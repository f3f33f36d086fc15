package fsmtest

import (
	"fmt"
	"reflect"
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

// CheckCodes fails t if the index of a row in table is not the row's code, or if the code
// has the bit 0x40, which marks an answer.
func CheckCodes[M any](t testing.TB, table []command.Row[M]) {
	t.Helper()
	rows := 0
	for code, row := range table {
		if row.Type == nil {
			continue
		}
		rows++
		if int(row.Head.Code) != code || row.Head.Version == 0 || code&0x40 != 0 {
			t.Errorf("%v lies at %d and has code %d, version %d", row.Type, code, row.Head.Code, row.Head.Version)
		}
	}
	if rows == 0 {
		t.Error("the table has no rows")
	}
}
