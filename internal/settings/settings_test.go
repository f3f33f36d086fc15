package settings

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"facet/internal/codec"
)

// described checks the fields of T against its struct.
func described[T any](t *testing.T) {
	t.Helper()
	of, fields := reflect.TypeFor[T](), Fields[T]()
	if of.NumField() != len(fields) {
		t.Fatalf("%v has %d fields, %d are described", of, of.NumField(), len(fields))
	}
	var seen uint64
	for i, f := range fields {
		if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != f.Name {
			t.Errorf("%v.%s: JSON has %s, the description %s", of, of.Field(i).Name, name, f.Name)
		}
		if seen&bit[T](i) != 0 {
			t.Errorf("%v.%s: another field has its key", of, of.Field(i).Name)
		}
		seen |= bit[T](i)
		var one T
		if err := json.Unmarshal([]byte(`{"`+f.Name+`":`+f.Example+`}`), &one); err != nil || reflect.ValueOf(one).Field(i).IsZero() {
			t.Errorf("%v.%s: the example %s sets nothing: %v", of, of.Field(i).Name, f.Example, err)
		}
		kind := of.Field(i).Type.Kind()
		if (kind == reflect.String) != (f.Check != nil) || kind != reflect.Bool && f.Choices == nil && f.Max == 0 {
			t.Errorf("%v.%s: the description lacks a bound or a check", of, of.Field(i).Name)
		}
		if f.Default != 0 && f.Min == 0 && strings.Contains(of.Field(i).Tag.Get("json"), "omitzero") {
			t.Errorf("%v.%s: clients would read a 0 as the default", of, of.Field(i).Name)
		}
	}
}

func TestEachSettingIsDescribed(t *testing.T) {
	t.Parallel()
	described[Gallery](t)
	described[Application](t)
}

func TestChangeSetsWhatItNames(t *testing.T) {
	t.Parallel()
	old := Gallery{Name: "a", Size: 1, RetentionDays: 30, Purpose: "entry"}
	head := codec.Head{Code: 1, Version: 1}
	var c Change[Gallery]
	if err := codec.Decode(codec.Encode(head, ChangeTo(Gallery{Name: "b", Size: 5}, "name", "retentionDays")), head, &c); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Of(old), (Gallery{Name: "b", Size: 1, Purpose: "entry"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	names := slices.DeleteFunc(Names[Gallery](), func(name string) bool { return !c.Has(name) })
	if !slices.Equal(names, []string{"name", "retentionDays"}) {
		t.Errorf("sets %v", names)
	}
	all := Application{}
	for i := range Fields[Application]() {
		all = Change[Application]{Defaults[Application](), bit[Application](i)}.Of(all)
	}
	if all != Defaults[Application]() {
		t.Errorf("all fields one by one: %+v", all)
	}
}
