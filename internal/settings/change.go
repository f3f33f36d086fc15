package settings

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Change sets some fields of a T, Gallery or Application.
type Change[T any] struct {
	To T `cbor:"1,keyasint"`
	// Given has bit n if the field with key n is set.
	Given uint64 `cbor:"2,keyasint"`
}

// ChangeTo returns a change that sets the named fields to those of to.
func ChangeTo[T any](to T, names ...string) Change[T] {
	c := Change[T]{To: to}
	for _, name := range names {
		c.Given |= bit[T](index[T](name))
	}
	return c
}

// Has reports whether c sets the field with a name.
func (c Change[T]) Has(name string) bool { return c.Given&bit[T](index[T](name)) != 0 }

// Of returns old with the change.
func (c Change[T]) Of(old T) T {
	from, to := reflect.ValueOf(c.To), reflect.ValueOf(&old).Elem()
	for i := range to.NumField() {
		if c.Given&bit[T](i) != 0 {
			to.Field(i).Set(from.Field(i))
		}
	}
	return old
}

// index returns where T has the field with a name.
func index[T any](name string) int {
	i := slices.IndexFunc(Fields[T](), func(f Field) bool { return f.Name == name })
	if i < 0 {
		panic("bug: no setting " + name)
	}
	return i
}

// bit returns the bit of the i-th field of T.
func bit[T any](i int) uint64 {
	key, _, _ := strings.Cut(reflect.TypeFor[T]().Field(i).Tag.Get("cbor"), ",")
	n, err := strconv.ParseUint(key, 10, 6)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return 1 << n
}
