package main

import (
	"bytes"
	"cmp"
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

// Brief returns the description without what the service does with the value: the console's pages have it.
func (s setting) Brief() string {
	text, _, _ := strings.Cut(s.Doc, " facet keeps ")
	text, _, _ = strings.Cut(text, " A change counts ")
	return text
}

// Bounded returns the description with the bounds of a number.
func (s setting) Bounded() string {
	if s.Doc == "" || s.Kind != reflect.Int && s.Kind != reflect.Float64 {
		return s.Doc
	}
	return s.Doc + " From " + number(s.Min) + " to " + number(s.Max) + "."
}

// Read returns the description for who reads the setting, as in the document.
func (s setting) Read() string { return cmp.Or(s.Shown, s.Doc) }

// ReadIn returns Read in a language in which an absent setting has a value.
func (s setting) ReadIn(language string) string {
	absent := s.Absent(language)
	if s.Kind == reflect.String && s.Choices == nil {
		absent = "Empty"
	}
	return strings.Replace(s.Read(), "Absent", absent, 1)
}

// Title returns the name with a capital letter.
func (s setting) Title() string { return strings.ToUpper(s.Name[:1]) + s.Name[1:] }

// Snake returns the name with underscores.
func (s setting) Snake() string { return strings.Join(s.Words(), "_") }

// Absent returns the value of the setting if an answer does not have it, in "go", "python" or "js". A Go
// client knows no defaults.
func (s setting) Absent(language string) string {
	first := ""
	if s.Choices != nil && language != "go" {
		first = s.Choices[0]
	}
	switch {
	case s.Kind == reflect.String && language == "js":
		return "'" + first + "'"
	case s.Kind == reflect.String:
		return strconv.Quote(first)
	case s.Kind == reflect.Bool && language == "python":
		return "False"
	case s.Kind == reflect.Bool:
		return "false"
	case language == "go":
		return "0"
	default:
		return number(s.Default)
	}
}

// Word returns the type as schemas and the readers of JavaScript name it.
func (s setting) Word() string {
	return map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number", reflect.Int: "integer"}[s.Kind]
}

// In returns the type in a language: "go", "python" or "js".
func (s setting) In(language string) string {
	return map[reflect.Kind]map[string]string{
		reflect.String:  {"go": "string", "python": "str", "js": "string"},
		reflect.Bool:    {"go": "bool", "python": "bool", "js": "boolean"},
		reflect.Float64: {"go": "float64", "python": "float", "js": "number"},
		reflect.Int:     {"go": "int", "python": "int", "js": "number"},
	}[s.Kind][language]
}

// Given returns the type of a value that a program gives, in "python" or "js".
func (s setting) Given(language string) string {
	switch {
	case s.Choices == nil:
		return s.In(language)
	case language == "js":
		return "'" + strings.Join(s.Choices, "' | '") + "'"
	default:
		return `Literal["` + strings.Join(s.Choices, `", "`) + `"]`
	}
}

// number returns n with the digits that it needs.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// comment returns a comment of TypeScript, in one line if it fits.
func comment(prefix, text string) string {
	if one := prefix + "/** " + text + " */"; len(one) <= 118 {
		return one
	}
	return prefix + "/**\n" + wrapped(prefix+" * ", 118, text) + "\n" + prefix + " */"
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

// files are those of the clients, and their templates.
var files = map[string]string{
	"clients/go/settings.go":                       "go settings",
	"clients/go/answers.go":                        "go answers",
	"clients/python/src/facet_client/_settings.py": "python settings",
	"clients/python/src/facet_client/_answers.py":  "python answers",
	"clients/js/src/settings.js":                   "js settings",
	"clients/js/src/models.js":                     "js answers",
	"clients/js/src/answers.d.ts":                  "ts answers",
}

// generated returns the files that follow, by name.
func generated(root fs.FS) (map[string]string, error) {
	old, err := fs.ReadFile(root, document)
	if err != nil {
		return nil, err
	}
	all, err := readAnswers(root)
	if err != nil {
		return nil, err
	}
	made := map[string]string{}
	if made[document], err = described(string(old), all); err != nil {
		return nil, err
	}
	templates := template.New("")
	templates.Funcs(template.FuncMap{"comment": comment, "wrapped": wrapped, "without": without, "methods": func(language string, a answer) (string, error) {
		var text strings.Builder
		t := templates.Lookup(language + " " + a.Name)
		if t == nil {
			return "", nil
		}
		err := t.Execute(&text, nil)
		return text.String(), err
	}})
	if _, err := templates.Parse(clients); err != nil {
		return nil, err
	}
	data := map[string]any{"Gallery": settingsOf[settings.Gallery](), "Application": settingsOf[settings.Application](), "Answers": slices.DeleteFunc(all, isMap)}
	for name, of := range files {
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, of, data); err != nil {
			return nil, err
		}
		made[name] = text.String()
		if strings.HasSuffix(name, ".go") {
			source, err := format.Source(text.Bytes())
			if err != nil {
				return nil, err
			}
			made[name] = string(source)
		}
	}
	return made, nil
}
