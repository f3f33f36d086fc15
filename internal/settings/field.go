package settings

import (
	"reflect"
	"strings"
	"unicode"
)

// Field describes one setting.
type Field struct {
	// Name is its name in JSON.
	Name string
	// Min and Max bound a number. Max is the most characters of a text.
	Min, Max float64
	// Default is the number of a record that is created without one. 0 is none.
	Default float64
	// Required fields are there when a record is created.
	Required bool
	// Core fields belong to the interface that facet serves; the others extend it.
	Core bool
	// Choices are the values of a text that has few.
	Choices []string
	// Check returns what is wrong with a text, in words that follow "must", or "".
	Check func(text string) string
	// Doc describes the field for who sets it, and Shown for who reads it, unless Doc does.
	Doc, Shown string
	// Example is a value in JSON.
	Example string
	// Flag is the name of the program's flag, unless Words has it, and Help its help.
	Flag, Help string
}

const lineMax = 256

var (
	nameField = Field{
		Name: "name", Max: 256, Required: true, Core: true, Check: nameFault, Example: `"staff"`,
		Help: "another name",
	}
	descriptionField = Field{
		Name: "description", Max: 4096, Core: true, Check: textFault, Example: `"the staff of the main building"`,
		Help: "what it is for",
	}
)

// Fields returns the fields of T, Gallery or Application, in the order of the struct's.
func Fields[T any]() []Field {
	switch any(*new(T)).(type) {
	case Gallery:
		return galleryFields
	case Application:
		return applicationFields
	}
	panic("bug: no settings")
}

// Names returns the names of the fields of T.
func Names[T any]() []string {
	var names []string
	for _, f := range Fields[T]() {
		names = append(names, f.Name)
	}
	return names
}

// Named returns the field of T with a name.
func Named[T any](name string) Field { return Fields[T]()[index[T](name)] }

// Defaults returns a T with the defaults of its fields.
func Defaults[T any]() (t T) {
	for i, f := range Fields[T]() {
		if f.Default != 0 {
			to := reflect.ValueOf(&t).Elem().Field(i)
			to.Set(reflect.ValueOf(f.Default).Convert(to.Type()))
		}
	}
	return t
}

// Words returns the field's name in lower-case words.
func (f Field) Words() []string {
	var words []string
	for at, r := range f.Name {
		if at == 0 || unicode.IsUpper(r) {
			words = append(words, "")
		}
		words[len(words)-1] += string(unicode.ToLower(r))
	}
	return words
}

// nameFault is the Check of names.
func nameFault(name string) string {
	if strings.TrimSpace(name) == "" {
		return "not be empty"
	}
	return lineFault(name)
}

// lineFault is the Check of texts of one line.
func lineFault(line string) string {
	if strings.ContainsFunc(line, unicode.IsControl) {
		return "have no control characters"
	}
	return ""
}

// textFault is the Check of other texts.
func textFault(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' }) {
		return "have no control characters but tab and line feed"
	}
	return ""
}
