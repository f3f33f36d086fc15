package fsmtest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Fields returns the stored form of a type in one line: the CBOR keys of its fields and of
// their fields. Tests compare this line, because the examples' bytes do not show a new
// optional field, which older software refuses.
func Fields(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + Fields(t.Elem())
	case reflect.Slice:
		return "[]" + Fields(t.Elem())
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), Fields(t.Elem()))
	case reflect.Struct:
		list := fieldsOf(t)
		slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(keyOf(a), keyOf(b)) })
		for i := 1; i < len(list); i++ {
			if key := keyOf(list[i]); key > 0 && key == keyOf(list[i-1]) {
				panic(fmt.Sprintf("bug: two fields of %v have the key %d, and CBOR stores one of them", t, key))
			}
		}
		return "{" + strings.Join(list, ", ") + "}"
	default:
		return t.Kind().String()
	}
}

// fieldsOf describes each field of a struct, with those of embedded ones, as CBOR stores them.
func fieldsOf(t reflect.Type) (list []string) {
	for field := range t.Fields() {
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			list = append(list, fieldsOf(field.Type)...)
			continue
		}
		key, _, _ := strings.Cut(field.Tag.Get("cbor"), ",")
		list = append(list, cmp.Or(key, field.Name)+" "+Fields(field.Type))
	}
	return list
}

// keyOf returns the key with which the description of a field begins, or 0.
func keyOf(field string) int {
	key, _, _ := strings.Cut(field, " ")
	n, _ := strconv.Atoi(key)
	return n
}
