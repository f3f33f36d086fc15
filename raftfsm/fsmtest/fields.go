package fsmtest

import (
	"fmt"
	"reflect"
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
