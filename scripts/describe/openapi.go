package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"facet/internal/settings"
)

// request is a schema of a body that creates something with settings, or changes them.
type request struct {
	name, words string
	use         use
	settings    []setting
	// first is the property before the settings, or "".
	first string
	// required names those that are always there. An extension is never among them.
	required string
}

type use int

const (
	creates use = iota
	changes
	shows
)

func requests() []request {
	gallery, application := settingsOf[settings.Gallery](), settingsOf[settings.Application]()
	quality := application[slices.IndexFunc(application, func(s setting) bool { return s.Name == "faceMinimumQualityScore" })].property(creates)
	const galleryID = `"galleryId": {"type": "string", "maxLength": 128}`
	return []request{
		{"GalleryCreate", "A gallery and its first application. The name is unique within the tenant.", creates, gallery, quality, "name faceMinimumQualityScore size"},
		{"GalleryUpdate", "What is absent stays.", changes, gallery, "", ""},
		{"ApplicationCreate", "", creates, application, galleryID, "name faceMinimumQualityScore galleryId"},
		{"ApplicationUpdate", "What is absent stays.", changes, application, "", ""},
	}
}

// schemasHead begins the schemas of the document, which are its end.
const schemasHead = "\n    \"schemas\": {"

// described returns the document with the schemas rebuilt.
func described(document string, all []answer) (string, error) {
	texts := map[string]string{}
	for _, r := range requests() {
		texts[r.name] = r.schema()
	}
	for _, a := range all {
		if a.Schema != "-" {
			texts[a.Schema] = a.view(nil).schema()
		}
		for _, fields := range a.Views {
			texts[fields[0]] = a.view(fields[1:]).schema()
		}
		if a.None != "" {
			texts[a.None] = a.ofNone().schema()
		}
	}
	others, document, ok := strings.Cut(document, schemasHead)
	if !ok {
		return "", errors.New("the document has no schemas")
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		head := fmt.Sprintf("\n      %q: {\n", name)
		before, rest, ok := strings.Cut(document, head)
		if !ok {
			document = head + texts[name] + "\n      }," + document
			continue
		}
		_, after, ok := strings.Cut(rest, "\n      }")
		if !ok {
			return "", fmt.Errorf("the schema %s does not end", name)
		}
		document = before + head + texts[name] + "\n      }" + after
	}
	return others + schemasHead + document, nil
}

// schema returns the schema of an answer.
func (a answer) schema() string {
	head := `"type": "object"`
	if a.Ext {
		head = `"x-facet-extension": true, ` + head
	}
	if isMap(a) {
		head += `, "additionalProperties": {` + a.Fields[0].value() + "}"
	}
	var required, properties []string
	for _, f := range a.Fields {
		if s := f.setting; s != nil && s.Core || s == nil && (!f.Omitted || f.v11) {
			required = append(required, f.JSON)
		}
		if !f.clientOnly {
			properties = append(properties, a.property(f))
		}
	}
	return object(head, a.Text("json"), required, properties)
}

// view returns the answer with fields that are always there, and without those of other views.
func (a answer) view(names []string) answer {
	var fields []field
	for _, f := range a.Fields {
		has := func(names []string) bool { return slices.Contains(names, f.JSON) }
		switch {
		case has(names):
			f.Omitted = false
		case slices.ContainsFunc(a.Views, has):
			continue
		}
		fields = append(fields, f)
	}
	a.Fields = fields
	return a
}

// ofNone returns the answer that found nothing: a message, an empty list without a cursor, and what extends it.
func (a answer) ofNone() answer {
	fields := []field{{Name: "Message", JSON: "message", schema: kinds["string"].schema}}
	for i, f := range a.Fields {
		f.ext = true
		if i == 0 {
			f.min, f.max = "", "0"
		}
		if f.Of != "Cursor" {
			fields = append(fields, f)
		}
	}
	a.Doc, a.Fields = a.NoneDoc, fields
	return a
}

// property returns the property of a field of an answer.
func (a answer) property(f field) string {
	if f.setting != nil {
		return f.setting.property(shows)
	}
	text := f.value()
	if f.ext && !a.Ext {
		text = `"x-facet-extension": true, ` + text
	}
	if words := a.TextOf(f, "json"); words != "" {
		text += `, "description": ` + quoted(words)
	}
	return fmt.Sprintf("%q: {%s}", f.JSON, text)
}

// value returns the schema of a field's value.
func (f field) value() string {
	of := f.schema
	switch {
	case len(f.enum) == 1:
		of = `"const": "` + f.enum[0] + `"`
	case f.enum != nil:
		of = `"enum": ["` + strings.Join(f.enum, `", "`) + `"]`
	}
	text, bounds := of, [2]string{"minimum", "maximum"}
	switch {
	case f.List:
		text, bounds = `"type": "array"`, [2]string{"minItems", "maxItems"}
	case f.Of == "string":
		bounds = [2]string{"minLength", "maxLength"}
	}
	for i, bound := range []string{f.min, f.max} {
		if bound != "" {
			text += fmt.Sprintf(", %q: %s", bounds[i], bound)
		}
	}
	if f.List {
		text += `, "items": {` + of + `}`
	}
	return text
}

func (r request) schema() string {
	var properties []string
	if r.first != "" {
		properties = []string{r.first}
	}
	for _, s := range r.settings {
		properties = append(properties, s.property(r.use))
	}
	return object(`"type": "object"`, r.words, strings.Fields(r.required), properties)
}

// object returns the schema of an object that begins with head.
func object(head, words string, required, properties []string) string {
	if words != "" {
		head += `, "description": ` + quoted(words)
	}
	if len(required) > 0 {
		head += `, "required": ["` + strings.Join(required, `", "`) + `"]`
	}
	return "        " + head + ",\n        \"properties\": {\n          " + strings.Join(properties, ",\n          ") + "\n        }"
}

// property returns the property of a setting.
func (s setting) property(u use) string {
	var parts []string
	add := func(form string, values ...any) { parts = append(parts, fmt.Sprintf(form, values...)) }
	if !s.Core {
		add(`"x-facet-extension": true`)
	}
	if u == shows || u == creates && s.Required {
		add(`"type": %q`, s.Word())
	} else {
		add(`"type": [%q, "null"]`, s.Word())
	}
	s.bounds(u, add)
	words := s.Doc
	if u == shows {
		words = s.Read()
	}
	if words != "" {
		add(`"description": %s`, quoted(words))
	}
	if u == creates {
		add(`"examples": [%s]`, s.Example)
	}
	return fmt.Sprintf("%q: {%s}", s.Name, strings.Join(parts, ", "))
}

// bounds adds what bounds the values.
func (s setting) bounds(u use, add func(form string, values ...any)) {
	switch {
	case s.Choices != nil && u == shows:
		add(`"enum": ["%s"]`, strings.Join(s.Choices[1:], `", "`))
	case s.Choices != nil:
		add(`"enum": ["%s", null]`, strings.Join(s.Choices, `", "`))
	case s.Kind == reflect.Bool && u == shows && s.Omitted:
		add(`"const": true`)
	case s.Kind == reflect.Bool && u == creates:
		add(`"default": false`)
	case s.Kind == reflect.String && u == shows && s.Core:
	case s.Kind == reflect.String:
		if s.Required {
			add(`"minLength": 1`)
		}
		add(`"maxLength": %v`, s.Max)
	case s.Kind != reflect.Bool:
		least := s.Min
		if u == shows && s.Omitted {
			least = max(1, least)
		}
		add(`"minimum": %v`, least)
		if u != shows || s.Name != "size" {
			add(`"maximum": %s`, number(s.Max))
		}
		if u == creates && !s.Required {
			add(`"default": %v`, s.Default)
		}
	}
}

func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic("bug: " + err.Error())
	}
	return strings.TrimSpace(b.String())
}
