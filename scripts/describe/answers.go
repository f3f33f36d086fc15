package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"facet/internal/settings"
)

// answersFolder has package answers.
const answersFolder = "internal/answers"

// answer is a struct of package answers.
type answer struct {
	Name, Doc string
	// Schema is its name in the document, or "-". None is the schema of an answer that found nothing.
	Schema, None, NoneDoc string
	// Views are schemas of their own: a name and the fields that it has always and others have not.
	Views [][]string
	// Ext marks an extension. A frame is a body of which clients show the only field.
	Ext, Frame bool
	Fields     []field
	// embedded structs are parts of others, used ones their fields.
	embedded, used bool
}

// field is a field of an answer.
type field struct {
	Name, JSON, Doc string
	// Of is the type, of a list that of an element.
	Of                             string
	List, Pointer, Omitted         bool
	ext, v11, clientOnly, zeroInGo bool
	// schema is that of the type, min and max bound the value or the length.
	schema, min, max string
	enum             []string
	// setting is set instead, but for Name, JSON and Doc, in a field of package settings.
	setting *setting
}

// readAnswers returns the structs of package answers, each after those that it has.
func readAnswers(root fs.FS) ([]answer, error) {
	files, err := fs.Glob(root, answersFolder+"/*.go")
	if err != nil {
		return nil, err
	}
	all := map[string]*answer{}
	var names []string
	for _, file := range files {
		source, err := fs.ReadFile(root, file)
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			a, err := structOf(d)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if a != nil {
				all[a.Name] = a
				names = append(names, a.Name)
			}
		}
	}
	return ordered(all, names)
}

// structOf returns the struct that a declaration has, or nil.
func structOf(d ast.Decl) (*answer, error) {
	general, ok := d.(*ast.GenDecl)
	if !ok || general.Tok != token.TYPE {
		return nil, nil
	}
	spec := general.Specs[0].(*ast.TypeSpec)
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil, nil
	}
	a, err := newAnswer(spec.Name.Name, general.Doc)
	if err == nil {
		a.Fields, err = fieldsOf(s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name.Name, err)
	}
	return a, nil
}

// ordered returns the answers with the fields of those that they embed, each after those that it has.
func ordered(all map[string]*answer, names []string) (list []answer, err error) {
	done := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if done[name] {
			return
		}
		done[name] = true
		a := all[name]
		var fields []field
		for _, f := range a.Fields {
			of := all[f.Of]
			k, known := kinds[f.Of]
			f.schema = k.schema
			switch {
			case of != nil:
				add(f.Of)
				f.schema = component(of.Schema)
			case !known && f.setting == nil:
				err = fmt.Errorf("%s.%s: the type %q is not known", name, f.Name, f.Of)
			}
			switch {
			case f.JSON != "":
				fields = append(fields, f)
				if of != nil {
					of.used = true
				}
			case of != nil:
				fields = append(fields, of.Fields...)
				of.embedded = true
			}
		}
		for i := 0; i < len(fields); i++ { // a setting takes the place of a field with its name
			if j := slices.IndexFunc(fields[i+1:], func(f field) bool { return f.JSON == fields[i].JSON }) + i + 1; j > i {
				fields[i] = fields[j]
				fields = slices.Delete(fields, j, j+1)
			}
		}
		a.Fields = fields
		list = append(list, *a)
	}
	for _, name := range names {
		add(name)
	}
	for _, a := range list {
		if all[a.Name].embedded && all[a.Name].used {
			err = fmt.Errorf("%s is embedded and a field", a.Name)
		}
		if word := a.foreign(list); word != "" {
			err = fmt.Errorf("the comments of %s have %s, which is a field of another struct", a.Name, word)
		}
	}
	return slices.DeleteFunc(list, func(a answer) bool { return all[a.Name].embedded }), err
}

func newAnswer(name string, doc *ast.CommentGroup) (*answer, error) {
	a := &answer{Name: name, Doc: oneLine(doc), Schema: name}
	if a.Doc == "" {
		return nil, errors.New("it has no comment")
	}
	for _, c := range doc.List {
		directive, ok := strings.CutPrefix(c.Text, "//facet:")
		if !ok {
			continue
		}
		switch word, rest, _ := strings.Cut(directive, " "); word {
		case "schema":
			a.Schema = rest
		case "view":
			a.Views = append(a.Views, strings.Fields(rest))
		case "none":
			a.None, a.NoneDoc, _ = strings.Cut(rest, " ")
		case "ext":
			a.Ext = true
		case "frame":
			a.Frame = true
		default:
			return nil, fmt.Errorf("%q is not known", c.Text)
		}
	}
	return a, nil
}

func fieldsOf(s *ast.StructType) (list []field, err error) {
	for _, one := range s.Fields.List {
		if len(one.Names) > 1 || one.Tag == nil {
			return nil, errors.New("each field has a line and a tag of its own")
		}
		tag, err := strconv.Unquote(one.Tag.Value)
		if err != nil {
			return nil, err
		}
		f := field{Doc: oneLine(one.Doc)}
		if err := f.setType(one.Type); err != nil {
			return nil, err
		}
		if len(one.Names) == 0 {
			list = append(list, embed(f)...)
			continue
		}
		f.Name = one.Names[0].Name
		var options string
		f.JSON, options, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		f.Omitted = options == "omitzero"
		if err := f.setTag(reflect.StructTag(tag).Get("schema")); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// embed returns the fields of an embedded struct of package settings, or the struct.
func embed(f field) (list []field) {
	var all []setting
	switch f.Of {
	case "settings.Gallery":
		all = settingsOf[settings.Gallery]()
	case "settings.Application":
		all = settingsOf[settings.Application]()
	default:
		return []field{f}
	}
	for _, s := range all {
		list = append(list, field{Name: s.Title(), JSON: s.Name, Doc: s.Read(), setting: &s})
	}
	return list
}

func (f *field) setType(e ast.Expr) error {
	switch e := e.(type) {
	case *ast.Ident:
		f.Of = e.Name
	case *ast.SelectorExpr:
		f.Of = e.X.(*ast.Ident).Name + "." + e.Sel.Name
	case *ast.StarExpr:
		f.Pointer = true
		return f.setType(e.X)
	case *ast.ArrayType:
		f.List = true
		return f.setType(e.Elt)
	default:
		return fmt.Errorf("a field is a %T", e)
	}
	return nil
}

func (f *field) setTag(tag string) error {
	for word := range strings.FieldsSeq(tag) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "ext":
			f.ext = true
		case "v1.1":
			f.v11 = true
		case "client":
			f.clientOnly = true
		case "zero":
			f.zeroInGo = true
		case "min":
			f.min = value
		case "max":
			f.max = value
		case "enum":
			f.enum = strings.Split(value, "|")
		default:
			return fmt.Errorf("%s has the unknown tag %q", f.Name, word)
		}
	}
	if f.enum != nil && !f.List && f.min+f.max != "" {
		return fmt.Errorf("%s lists its values: it has no bounds", f.Name)
	}
	return nil
}

func oneLine(doc *ast.CommentGroup) string { return strings.Join(strings.Fields(doc.Text()), " ") }

// foreign returns a word of the comments that names fields of other structs only: no language would spell it.
func (a answer) foreign(all []answer) string {
	texts := a.Doc
	own := map[string]bool{}
	for _, f := range a.Fields {
		texts, own[f.Name] = texts+" "+f.Doc, true
	}
	for _, word := range camelWord.FindAllString(texts, -1) {
		if own[word] || word == a.Name || strings.ToLower(word[1:]) == word[1:] || strings.ToUpper(word) == word {
			continue
		}
		for _, b := range all {
			if slices.ContainsFunc(b.Fields, func(f field) bool { return f.Name == word }) {
				return word
			}
		}
	}
	return ""
}
