package main

import (
	"bytes"
	_ "embed"
	"go/format"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"facet/internal/settings"
)

const document = "node/httpapi/openapi/openapi.json"

// setting is a settings.Field with what its struct says.
type setting struct {
	settings.Field
	Kind reflect.Kind // String, Bool, Float64 or Int
	// Omitted settings are absent in answers if they are zero.
	Omitted bool
}

// settingsOf returns the settings of T.
func settingsOf[T any]() []setting {
	var list []setting
	for i, f := range settings.Fields[T]() {
		field := reflect.TypeFor[T]().Field(i)
		kind := field.Type.Kind()
		switch {
		case f.Choices != nil:
			kind = reflect.String
		case kind != reflect.String && kind != reflect.Bool && kind != reflect.Float64:
			kind = reflect.Int
		}
		list = append(list, setting{f, kind, strings.Contains(field.Tag.Get("json"), "omitzero")})
	}
	return list
}

// without returns the settings but those with these names.
func without(list []setting, names ...string) []setting {
	return slices.DeleteFunc(slices.Clone(list), func(s setting) bool { return slices.Contains(names, s.Name) })
}

// Read returns the description for who reads the setting.
func (s setting) Read() string {
	if s.Shown != "" {
		return s.Shown
	}
	return s.Doc
}

// Brief returns the first sentence of the description.
func (s setting) Brief() string {
	first, _, more := strings.Cut(s.Doc, ". ")
	if more {
		first += "."
	}
	return first
}

// Title returns the name with a capital letter.
func (s setting) Title() string { return strings.ToUpper(s.Name[:1]) + s.Name[1:] }

// Snake returns the name with underscores.
func (s setting) Snake() string { return strings.Join(s.Words(), "_") }

// Absent returns the value that an answer without the setting has, in "python" or "js".
func (s setting) Absent(language string) string {
	switch {
	case s.Kind == reflect.String && language == "js":
		return "'" + strings.Join(s.Choices[:min(1, len(s.Choices))], "") + "'"
	case s.Kind == reflect.String:
		return strconv.Quote(strings.Join(s.Choices[:min(1, len(s.Choices))], ""))
	case s.Kind == reflect.Bool && language == "python":
		return "False"
	case s.Kind == reflect.Bool:
		return "false"
	default:
		return strconv.FormatFloat(s.Default, 'f', -1, 64)
	}
}

// Reader returns the reader of JavaScript's answers.
func (s setting) Reader() string {
	return map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number", reflect.Int: "integer"}[s.Kind]
}

// In returns the type in a language: "go", "python" or "js".
func (s setting) In(language string) string {
	return types[s.Kind][slices.Index([]string{"go", "python", "js"}, language)]
}

var types = map[reflect.Kind][3]string{
	reflect.String:  {"string", "str", "string"},
	reflect.Bool:    {"bool", "bool", "boolean"},
	reflect.Float64: {"float64", "float", "number"},
	reflect.Int:     {"int", "int", "number"},
}

// wrapped returns text in lines of at most wide characters, each with a prefix.
func wrapped(prefix string, wide int, text string) string {
	var lines []string
	line := prefix
	for word := range strings.FieldsSeq(text) {
		if line != prefix && len(line)+1+len(word) > wide {
			lines, line = append(lines, line), prefix
		}
		if line != prefix {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}

//go:embed clients.tmpl
var clients string

// files returns what is made, by name.
func files(root fs.FS) (map[string]string, error) {
	old, err := fs.ReadFile(root, document)
	if err != nil {
		return nil, err
	}
	described, err := described(string(old))
	if err != nil {
		return nil, err
	}
	made := map[string]string{document: described}
	all, err := template.New("").Funcs(template.FuncMap{"wrapped": wrapped, "without": without}).Parse(clients)
	if err != nil {
		return nil, err
	}
	data := map[string][]setting{"Gallery": settingsOf[settings.Gallery](), "Application": settingsOf[settings.Application]()}
	for template, name := range map[string]string{
		"go": "clients/go/settings.go", "python": "clients/python/src/facet_client/_settings.py", "js": "clients/js/src/settings.js",
	} {
		var text bytes.Buffer
		if err := all.ExecuteTemplate(&text, template, data); err != nil {
			return nil, err
		}
		made[name] = text.String()
	}
	source, err := format.Source([]byte(made["clients/go/settings.go"]))
	made["clients/go/settings.go"] = string(source)
	return made, err
}
