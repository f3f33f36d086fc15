package fsmtest

import (
	"fmt"
	"reflect"
	"strings"
)

// Fields says in one line what a type looks like where it is stored: the keys of its
// fields and of theirs, without names. An optional field that is added does not change
// the bytes of any example, and yet older software refuses it: so the fields themselves
// are compared.
func Fields(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + Fields(t.Elem())
	case reflect.Slice:
		return "[]" + Fields(t.Elem())
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), Fields(t.Elem()))
	case reflect.Struct:
		var list []string
		for field := range t.Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("cbor"), ",")
			if field.Anonymous && field.Type.Kind() == reflect.Struct { // CBOR stores its fields among the others
				list = append(list, strings.TrimSuffix(strings.TrimPrefix(Fields(field.Type), "{"), "}"))
				continue
			}
			if key == "" {
				key = field.Name
			}
			list = append(list, key+" "+Fields(field.Type))
		}
		return "{" + strings.Join(list, ", ") + "}"
	default:
		return t.Kind().String()
	}
}
