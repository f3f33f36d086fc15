package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"facet/internal/settings"
)

// kind is a type that is no struct of package answers, in JSON schema and in each language. none is Python's value of
// an absent field.
type kind struct{ schema, golang, python, none, js, ts string }

var kinds = map[string]kind{
	"string":     {`"type": "string"`, "string", "str", `""`, "string", "string"},
	"int":        {`"type": "integer"`, "int", "int", "0", "integer", "number"},
	"uint64":     {`"type": "integer"`, "uint64", "int", "0", "integer", "number"},
	"float64":    {`"type": "number"`, "float64", "float", "0.0", "number", "number"},
	"bool":       {`"type": "boolean"`, "bool", "bool", "False", "boolean", "boolean"},
	"time.Time":  {`"type": "string", "format": "date-time"`, "time.Time", "datetime", "None", "date", "Date"},
	"Time":       {component("Time"), "time.Time", "datetime", "None", "date", "Date"},
	"ID":         {component("ID"), "string", "str", `""`, "string", "string"},
	"Score":      {component("Score"), "int", "int", "0", "integer", "number"},
	"Pixel":      {component("Pixel"), "Pixel", "int", "0", "integer", "number"},
	"Decimal":    {component("Decimal"), "Number", "float", "0.0", "number", "number"},
	"Digits":     {`"type": "string", "pattern": "^[0-9]+$"`, "string", "int", "0", "integer", "number"},
	"Status":     {`"type": "string"`, "Status", "str", `""`, "string", "string"},
	"Cursor":     {`"type": "string", "minLength": 1, "maxLength": 128`, "string", "str", "None", "string", "string"},
	"ExternalID": {component("ExternalID"), "string", "str", `""`, "string", "string"},
	"UserData":   {component("UserData"), "json.RawMessage", "dict[str, Any]", "None", "anyObject", "Record<string, unknown>"},
	"APIKey":     {component("APIKey"), "string", "str", `""`, "string", "string"},
	"FaceToken":  {component("FaceToken"), "string", "str", "None", "string", "string"},
	"Bytes":      {`"type": "string", "format": "byte"`, "[]byte", "str", `""`, "string", "string"},
	"Scores": {
		`"type": "array", "maxItems": 499500, "items": {"type": ["integer", "null"], "minimum": 0, "maximum": 9999}`,
		"[]*int", "list[int | None]", "None", "list(optional(integer))", "(number | undefined)[]",
	},
	// Structs that clients read as objects with any names.
	"Measures": {"", "map[string]Measure", "dict[str, Measure]", "{}", "named(Measure)", "Record<string, Measure>"},
	"LeftOut":  {"", "map[string]int", "dict[str, int]", "{}", "named(integer)", "Record<string, number>"},
}

func component(name string) string { return fmt.Sprintf(`"$ref": "#/components/schemas/%s"`, name) }

var camelWord = regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9]*\b`)

// in returns a text of a in a language: names of fields are spelled as there.
func (a answer) in(language, text string) string {
	return camelWord.ReplaceAllStringFunc(text, func(word string) string {
		for _, f := range a.Fields {
			if f.Name == word {
				return f.spelled(language)
			}
		}
		if !slices.Contains(settingNames, word) {
			return word
		}
		return field{Name: strings.ToUpper(word[:1]) + word[1:], JSON: word}.spelled(language)
	})
}

var settingNames = slices.DeleteFunc(append(settings.Names[settings.Gallery](), settings.Names[settings.Application]()...), func(name string) bool {
	return strings.ToLower(name) == name // a word of prose
})

func (f field) spelled(language string) string {
	switch language {
	case "go":
		return f.Name
	case "python":
		return f.Snake()
	default:
		return f.JSON
	}
}

// Text returns what the answer is in a language. Go's begins with its name.
func (a answer) Text(language string) string {
	text := a.Doc
	if language != "go" {
		for _, verb := range []string{" is ", " are "} {
			if rest, ok := strings.CutPrefix(text, a.Name+verb); ok {
				text = strings.ToUpper(rest[:1]) + rest[1:]
			}
		}
	}
	return a.in(language, text)
}

// TextOf returns what a field is in a language.
func (a answer) TextOf(f field, language string) string {
	if f.setting != nil {
		return f.setting.ReadIn(language)
	}
	text := f.Doc
	if language == "json" && f.v11 {
		text = strings.TrimSuffix(text, " Absent in version 1.") // which has schemas of its own
	}
	text = a.in(language, strings.Replace(text, "Absent ", f.absent(language)+" ", 1))
	if f.enum != nil && language != "json" {
		among := " One of "
		if f.List {
			among = " Each is one of "
		}
		text += among + `"` + strings.Join(f.enum, `", "`) + `".`
	}
	return strings.TrimSpace(text)
}

// absent returns what a client of a language has for an absent field, in a sentence. Schemas say Absent.
func (f field) absent(language string) string {
	none, golang := f.none(), f.Go()
	switch {
	case language == "json":
		return "Absent"
	case none == "[]" || none == "{}":
		return "Empty"
	case f.Of == "bool" && language == "python":
		return "False"
	case f.Of == "bool":
		return "false"
	case language == "js":
		return "Absent"
	case language == "python" && none != `""`:
		return none
	case language == "python", golang == "string" || golang == "Status":
		return "Empty"
	case strings.HasPrefix(golang, "*") || golang == "[]byte" || golang == "json.RawMessage" || golang == "[]*int":
		return "nil"
	case golang == "time.Time":
		return "Zero"
	default:
		return "0"
	}
}

// kind returns what is known of the type.
func (f field) kind() kind {
	if k, ok := kinds[f.Of]; ok {
		return k
	}
	return kind{"", f.Of, f.Of, "None", f.Of, f.Of}
}

// Go returns the type in a Go client.
func (f field) Go() string {
	golang := f.kind().golang
	switch {
	case f.setting != nil:
		return f.setting.In("go")
	case f.List:
		return "[]" + golang
	case f.Pointer && !f.zeroInGo && !strings.HasPrefix(golang, "map"):
		return "*" + golang
	default:
		return golang
	}
}

// Snake returns the name in Python.
func (f field) Snake() string { return strings.Join(settings.Field{Name: f.JSON}.Words(), "_") }

// none returns Python's value of an absent field.
func (f field) none() string {
	switch {
	case f.List:
		return "[]"
	case f.Pointer && f.kind().none != "{}":
		return "None"
	default:
		return f.kind().none
	}
}

// Python returns the type in Python, with the value of an absent field. list is the name of lists.
func (f field) Python(list string) string {
	if s := f.setting; s != nil {
		if s.Core {
			return s.In("python")
		}
		return s.In("python") + " = " + s.Absent("python")
	}
	of := f.kind().python
	if f.List {
		of = list + "[" + of + "]"
	}
	if !f.Omitted {
		return of
	}
	switch none := f.none(); none {
	case "[]":
		return of + " = field(default_factory=list)"
	case "{}":
		return of + " = field(default_factory=dict)"
	case "None":
		return of + " | None = None"
	default:
		return of + " = " + none
	}
}

// PythonList returns the name of lists in the class.
func (a answer) PythonList() string {
	if slices.ContainsFunc(a.Fields, func(f field) bool { return f.JSON == "list" }) {
		return "builtins.list"
	}
	return "list"
}

// JS returns the reader of JavaScript.
func (f field) JS() string {
	reader := f.kind().js
	if f.List {
		reader = "list(" + reader + ")"
	}
	switch {
	case !f.Omitted:
		return reader
	case f.List:
		return "or(" + reader + ", none)"
	case f.kind().none == "{}":
		return "or(" + reader + ", () => ({}))"
	case f.Of == "bool":
		return "or(boolean, () => false)"
	default:
		return "optional(" + reader + ")"
	}
}

// TS returns the member in TypeScript.
func (f field) TS() string {
	if f.setting != nil {
		return f.JSON + ": " + f.setting.In("js")
	}
	of := f.kind().ts
	switch {
	case f.List:
		return f.JSON + ": " + of + "[]"
	case f.Omitted && f.kind().none != "{}" && f.Of != "bool":
		return f.JSON + "?: " + of + " | undefined"
	default:
		return f.JSON + ": " + of
	}
}

// Optional reports whether a Go client leaves the field out of JSON if it is zero.
func (f field) Optional() bool {
	return f.Omitted && !f.zeroInGo || f.setting != nil && f.setting.Omitted
}

// Plain returns the fields that are no settings.
func (a answer) Plain() []field {
	return slices.DeleteFunc(slices.Clone(a.Fields), func(f field) bool { return f.setting != nil })
}

// Settings returns the name of the readers of the settings in JavaScript, or "".
func (a answer) Settings() string {
	if len(a.Plain()) == len(a.Fields) {
		return ""
	}
	return strings.ToLower(a.Name) + "Settings"
}

// isMap reports whether clients read the answer as an object with any names.
func isMap(a answer) bool {
	_, ok := kinds[a.Name]
	return ok
}
