package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"facet/internal/settings"
)

// A schema of the document has the settings that its use asks for, and other properties.
type schema struct {
	name, words string
	use         use
	settings    []setting
	// first and last are properties before and after the settings.
	first, last []string
	// required names those that are always there. An extension is never among them.
	required string
}

type use int

const (
	creates use = iota
	changes
	shows
)

// The properties that are no settings.
const (
	idProperty           = `"id": {"$ref": "#/components/schemas/ID"}`
	keyProperty          = `"apiKey": {"$ref": "#/components/schemas/APIKey"}`
	countProperty        = `"count": {"type": "integer", "minimum": 0, "description": "Active events."}`
	applicationsProperty = `"applications": {"type": "array", "items": {"$ref": "#/components/schemas/ApplicationEntry"}}`
	galleryProperty      = `"galleryId": {"type": "string", "maxLength": 128}`
)

func schemas() []schema {
	gallery, application := settingsOf[settings.Gallery](), settingsOf[settings.Application]()
	quality := application[slices.IndexFunc(application, func(s setting) bool { return s.Name == "faceMinimumQualityScore" })].property(creates)
	id := []string{idProperty}
	return []schema{
		{"GalleryCreate", "A gallery and its first application. The name is unique within the tenant.", creates, gallery, []string{quality}, nil, "name faceMinimumQualityScore size"},
		{"GalleryUpdate", "What is absent stays.", changes, gallery, nil, nil, ""},
		{"ApplicationCreate", "", creates, application, []string{galleryProperty}, nil, "name faceMinimumQualityScore galleryId"},
		{"ApplicationUpdate", "What is absent stays.", changes, application, nil, nil, ""},
		{"Gallery", "", shows, gallery, id, nil, "id name description size"},
		{"GalleryEntry", "", shows, gallery, id, []string{countProperty}, "id name description size count"},
		{"GalleryDetail", "", shows, gallery, id, []string{countProperty, applicationsProperty}, "id name description size count applications"},
		{"GalleryCreated", "", shows, gallery, id, []string{keyProperty}, "id name description size apiKey"},
		{"Application", "", shows, application, id, []string{keyProperty}, "id name description apiKey faceMinimumQualityScore"},
	}
}

// described returns the document with the schemas rebuilt.
func described(document string) (string, error) {
	for _, s := range schemas() {
		head := fmt.Sprintf("\n      %q: {\n", s.name)
		before, rest, ok := strings.Cut(document, head)
		if !ok {
			return "", fmt.Errorf("the document has no schema %s", s.name)
		}
		_, after, ok := strings.Cut(rest, "\n      }")
		if !ok {
			return "", fmt.Errorf("the schema %s does not end", s.name)
		}
		document = before + head + s.text() + "\n      }" + after
	}
	return document, nil
}

func (s schema) text() string {
	properties := slices.Clone(s.first)
	for _, one := range s.settings {
		properties = append(properties, one.property(s.use))
	}
	text := `        "type": "object"`
	if s.words != "" {
		text += `, "description": ` + quoted(s.words)
	}
	if s.required != "" {
		text += `, "required": ["` + strings.ReplaceAll(s.required, " ", `", "`) + `"]`
	}
	return text + ",\n        \"properties\": {\n          " + strings.Join(append(properties, s.last...), ",\n          ") + "\n        }"
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
