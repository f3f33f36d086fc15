package httpapi

import (
	"encoding"
	"reflect"
	"slices"
	"strings"

	"facet/internal/settings"
)

// readSettings reads the body of a request that creates a T, or changes one. given has the members of the body that
// T has, and the others that it may have.
func readSettings[T any](c *call, creates bool, others ...string) (given object, change settings.Change[T], err error) {
	given, err = readObject(c.body.bytes, append(settings.Names[T](), others...)...)
	if err != nil {
		return nil, change, err
	}
	var names []string
	if creates {
		change.To = settings.Defaults[T]()
	}
	to := reflect.ValueOf(&change.To).Elem()
	for i, f := range settings.Fields[T]() {
		if _, ok := given[f.Name]; ok {
			names = append(names, f.Name)
			err = given.setting(f, to.Field(i))
		} else if creates && f.Required {
			err = missing(f.Name)
		}
		if err != nil {
			return nil, change, err
		}
	}
	return given, settings.ChangeTo(change.To, names...), nil
}

// setting reads a setting into a field of its struct.
func (o object) setting(f settings.Field, to reflect.Value) (err error) {
	switch {
	case f.Choices != nil:
		text, _, wrong := o.text(f.Name, pathIDMax)
		if wrong != nil || !slices.Contains(f.Choices, text) {
			return invalid("", f.Name+" must be "+strings.Join(f.Choices, " or ")+".")
		}
		return to.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	case to.Kind() == reflect.Bool:
		var on bool
		on, err = o.boolean(f.Name)
		to.SetBool(on)
	case to.Kind() == reflect.String:
		var text string
		text, _, err = o.text(f.Name, int(f.Max))
		if err == nil && f.Check(text) != "" {
			err = invalid("", f.Name+" must "+f.Check(text)+".")
		}
		to.SetString(text)
	case to.Kind() == reflect.Float64:
		var n float64
		n, err = o.number(f.Name, f.Min, f.Max)
		to.SetFloat(n)
	default:
		var n int
		n, err = o.integer(f.Name, bounds{int(f.Min), int(f.Max)}, 0)
		to.Set(reflect.ValueOf(n).Convert(to.Type()))
	}
	return err
}
