package openapi_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"facet/internal/must"
	"facet/node/httpapi/openapi"
)

var rewrite = flag.Bool("rewrite", false, "write the outline of the interface")

// extension marks what goes beyond the interface.
const extension = "x-facet-extension"

// node is an object of the document.
type node = map[string]any

// document is the description as a tree, without types.
type document struct{ root node }

func readDocument(t *testing.T) document {
	t.Helper()
	var d document
	must.Do(t, json.Unmarshal(openapi.Document(), &d.root))
	return d
}

// resolved returns what n refers to, or n.
func (d document) resolved(n node) node {
	ref, ok := n["$ref"].(string)
	if !ok {
		return n
	}
	at := d.root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = at[name].(node)
	}
	return at
}

// marked reports whether v, or what it refers to, goes beyond the interface.
func (d document) marked(v any) bool {
	n, ok := v.(node)
	return ok && (n[extension] == true || d.resolved(n)[extension] == true)
}

// strip returns v without all that is marked, and without lists in which all is.
func (d document) strip(v any) any {
	switch v := v.(type) {
	case node:
		out := node{}
		for name, child := range v {
			list, _ := child.([]any)
			beyond := len(list) > 0 && !slices.ContainsFunc(list, func(one any) bool { return !d.marked(one) })
			if !d.marked(child) && !beyond {
				out[name] = d.strip(child)
			}
		}
		properties, _ := v["properties"].(node)
		if required, ok := v["required"].([]any); ok {
			out["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool { return d.marked(properties[name.(string)]) })
		}
		if list, ok := out["oneOf"].([]any); ok && len(out) == 1 && len(list) == 1 {
			return list[0] // the others were marked
		}
		return out
	case []any:
		out := []any{}
		for _, child := range v {
			if !d.marked(child) {
				out = append(out, d.strip(child))
			}
		}
		return out
	}
	return v
}

// stripped returns the document without extensions, as a tree and for kin-openapi.
func stripped(t *testing.T) (document, *openapi3.T) {
	t.Helper()
	d := readDocument(t)
	plain := document{d.strip(d.root).(node)}
	text, err := json.Marshal(plain.root)
	must.Do(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(text)
	must.Do(t, err)
	must.Do(t, doc.Validate(t.Context()))
	return plain, doc
}

// shape describes a schema by its fields. An optional field has a question mark.
func shape(schema node) string {
	if ref, ok := schema["$ref"].(string); ok {
		return filepath.Base(ref)
	}
	if list, ok := schema["oneOf"].([]any); ok && schema["properties"] == nil {
		var all []string
		for _, one := range list {
			all = append(all, shape(one.(node)))
		}
		return strings.Join(all, " or ")
	}
	if items, ok := schema["items"].(node); ok {
		return "[" + shape(items) + "]"
	}
	properties, ok := schema["properties"].(node)
	if !ok {
		return ""
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field := name
		if required, _ := schema["required"].([]any); !slices.Contains(required, any(name)) {
			field += "?"
		}
		if inner := shape(properties[name].(node)); inner != "" {
			field += ":" + inner
		}
		fields = append(fields, field)
	}
	return "{" + strings.Join(fields, " ") + "}"
}

// body returns the shape of the JSON of a request or response.
func (d document) body(v any) string {
	n, ok := v.(node)
	if !ok {
		return ""
	}
	content, ok := d.resolved(n)["content"].(node)
	if !ok {
		return ""
	}
	return " " + shape(content["application/json"].(node)["schema"].(node))
}

// outline lists operations, parameters and the fields of all bodies.
func (d document) outline() string {
	var lines []string
	for path, item := range d.root["paths"].(node) {
		for method, op := range item.(node) {
			op := op.(node)
			line := fmt.Sprintf("%s %s%s", strings.ToUpper(method), path, d.body(op["requestBody"]))
			parameters, _ := op["parameters"].([]any)
			for _, p := range parameters {
				if p := d.resolved(p.(node)); p["in"] != "path" {
					line += fmt.Sprintf(" ?%s", p["name"])
				}
			}
			responses := op["responses"].(node)
			for _, status := range slices.Sorted(maps.Keys(responses)) {
				line += ", " + status + d.body(responses[status])
			}
			lines = append(lines, line)
		}
	}
	components := d.root["components"].(node)
	for name, schema := range components["schemas"].(node) {
		if text := shape(schema.(node)); text != "" {
			lines = append(lines, name+" "+text)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// The outline in testdata was compared with the interface's text, field by field. What
// is added later changes nothing in it, but carries the mark.
func TestExtensionsLeaveTheInterfaceAlone(t *testing.T) {
	t.Parallel()
	plain, _ := stripped(t)
	unchanged(t, "testdata/interface.txt", plain.outline())
}

// wordsOnly are the members of the document that explain, and decide nothing.
var wordsOnly = []string{"description", "summary", "example", "examples", "title"}

// bare returns v without the words that explain it.
func bare(v any) any {
	switch v := v.(type) {
	case node:
		out := node{}
		for name, child := range v {
			_, text := child.(string)
			if _, list := child.([]any); slices.Contains(wordsOnly, name) && (text || list || name == "example" || name == "examples") {
				continue
			}
			out[name] = bare(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = bare(child)
		}
		return out
	}
	return v
}

// text has a line of JSON for each operation and component: types, bounds, defaults,
// closed lists, headers and signatures.
func (d document) text(t *testing.T) string {
	t.Helper()
	var lines []string
	add := func(name string, v any) {
		text, err := json.Marshal(bare(v))
		must.Do(t, err)
		lines = append(lines, name+" "+string(text))
	}
	for path, item := range d.root["paths"].(node) {
		for method, op := range item.(node) {
			add(strings.ToUpper(method)+" "+path, op)
		}
	}
	for kind, all := range d.root["components"].(node) {
		for name, one := range all.(node) {
			if kind != "examples" {
				add(kind+"/"+name, one)
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// Without extensions the document is the committed one of the interface alone. A line
// that an extension changes here was changed for all clients.
func TestPlainDocumentIsUnchanged(t *testing.T) {
	t.Parallel()
	plain, _ := stripped(t)
	unchanged(t, "testdata/interface-document.txt", plain.text(t))
}

// unchanged compares got with a file line by line, or rewrites the file.
func unchanged(t *testing.T, name, got string) {
	t.Helper()
	if *rewrite {
		must.Do(t, os.WriteFile(name, []byte(got), 0o600))
	}
	text, err := os.ReadFile(name)
	must.Do(t, err)
	want := strings.Split(string(text), "\n")
	for line := range strings.SplitSeq(got, "\n") {
		if at := slices.Index(want, line); at >= 0 {
			want = slices.Delete(want, at, at+1)
			continue
		}
		t.Errorf("%s does not have this line; mark what goes beyond the interface with %s:\n%s", name, extension, line)
	}
	for _, line := range want {
		t.Errorf("%s has this line of the interface, which is gone or changed:\n%s", name, line)
	}
}

// drop returns a JSON value without the fields that its schema marks. It reports fields
// that the schema does not have.
func (d document) drop(t *testing.T, where string, schema node, value any) any {
	t.Helper()
	schema = d.resolved(schema)
	switch value := value.(type) {
	case node:
		properties := d.fields(schema)
		if len(properties) == 0 {
			return value
		}
		out := node{}
		for name, child := range value {
			field, ok := properties[name].(node)
			switch {
			case !ok:
				t.Errorf("%s: the field %s is not in the document", where, name)
			case !d.marked(field):
				out[name] = d.drop(t, where+"."+name, field, child)
			}
		}
		return out
	case []any:
		items, ok := schema["items"].(node)
		if !ok {
			return value
		}
		out := []any{}
		for _, child := range value {
			out = append(out, d.drop(t, where, items, child))
		}
		return out
	}
	return value
}

// fields returns the fields of a schema, or those of all its alternatives.
func (d document) fields(schema node) node {
	if properties, ok := schema["properties"].(node); ok {
		return properties
	}
	all := node{}
	list, _ := schema["oneOf"].([]any)
	for _, one := range list {
		maps.Copy(all, d.fields(d.resolved(one.(node))))
	}
	return all
}

// Without the extensions' fields, each answer of the transcripts is one of the
// interface. Its requests may have unknown fields, which the service ignores.
func TestTranscriptsKeepToTheInterface(t *testing.T) {
	t.Parallel()
	full := readDocument(t)
	_, doc := stripped(t)
	all, checked, lines := operations(doc), 0, []string{}
	for _, s := range transcripts(t) {
		i := slices.IndexFunc(all, func(op operation) bool {
			return op.method == s.method && fits(segments(op.path), segments(s.path))
		})
		if i < 0 || s.answer == "" || strings.Contains(s.answer, `"errorType":"ServerError"`) {
			continue
		}
		op := all[i]
		r := op.Responses.Status(s.status)
		if r == nil {
			continue // a status beyond the interface; TestTranscriptsSatisfyTheDocument has it
		}
		var value any
		must.Do(t, json.Unmarshal([]byte(s.answer), &value))
		described := full.root["paths"].(node)[op.path].(node)[strings.ToLower(op.method)].(node)["responses"].(node)
		schema := full.resolved(described[fmt.Sprint(s.status)].(node))["content"].(node)["application/json"].(node)["schema"].(node)
		plain := full.drop(t, s.where, schema, value)
		if err := doc.ValidateSchemaJSON(r.Value.Content.Get("application/json").Schema.Value, plain, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s: %s %d %v: %v", s.where, op.OperationID, s.status, plain, err)
		}
		checked++
		if !full.beyond(s, op) {
			lines = append(lines, fmt.Sprintf("%s: %s %s %d %s", s.where, op.method, op.path, s.status, kinds(plain)))
		}
	}
	if checked < 100 {
		t.Errorf("checked %d steps only", checked)
	}
	unchanged(t, "testdata/interface-answers.txt", strings.Join(lines, "\n")+"\n")
}

// beyond reports whether the request of a step uses an extension.
func (d document) beyond(s step, of operation) bool {
	op := d.root["paths"].(node)[of.path].(node)[strings.ToLower(of.method)].(node)
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		if d.marked(p) && slices.Contains(s.named, strings.ToLower(d.resolved(p.(node))["name"].(string))) {
			return true
		}
	}
	var sent node
	body, _ := op["requestBody"].(node)
	if body == nil || json.Unmarshal([]byte(s.body), &sent) != nil {
		return false
	}
	schema := body["content"].(node)["application/json"].(node)["schema"].(node)
	for name, field := range d.fields(d.resolved(schema)) {
		if _, ok := sent[name]; ok && d.marked(field) {
			return true
		}
	}
	return false
}

// kinds describes a JSON value by its members and their types. Closed lists have their
// values.
func kinds(v any) string {
	switch v := v.(type) {
	case node:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			kind := kinds(v[name])
			if name == "errorCode" || name == "errorType" {
				kind = fmt.Sprint(v[name])
			}
			all = append(all, name+":"+kind)
		}
		return "{" + strings.Join(all, " ") + "}"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return "[" + kinds(v[0]) + "]"
	case string:
		return "text"
	case float64:
		return "number"
	}
	return fmt.Sprint(v)
}

// The page has the extensions in a half of their own.
func TestPageKeepsExtensionsApart(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/interface.md")
	must.Do(t, err)
	interfaces, beyond, ok := strings.Cut(string(text), "\n# Beyond the interface\n")
	if !ok {
		t.Fatal("docs/interface.md has no half beyond the interface")
	}
	d := readDocument(t)
	plain, err := json.Marshal(d.strip(d.root))
	must.Do(t, err)
	names := []string{"/openapi.json", "ServerError"}
	for _, row := range regexp.MustCompile(`(?m)^\| ((?:[A-Z][a-z]+){2,}(?:, (?:[A-Z][a-z]+)+)*) \|`).FindAllStringSubmatch(beyond, -1) {
		names = append(names, strings.Split(row[1], ", ")...) // reasons
	}
	walk(any(d.root), "", func(where string, n node) {
		if where == "/components" {
			return
		}
		if name, ok := n["name"].(string); ok && d.marked(n) {
			names = append(names, name)
		}
		for _, part := range []string{"properties", "headers"} {
			list, _ := n[part].(node)
			for name, child := range list {
				if d.marked(child) {
					names = append(names, name)
				}
			}
		}
	})
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 20 {
		t.Errorf("%d extensions only: %v", len(names), names)
	}
	for _, name := range names {
		if strings.Contains(string(plain), `"`+name+`":`) && name != "ServerError" {
			continue // a name that the interface has elsewhere, too
		}
		if name == strings.ToLower(name) && !strings.ContainsAny(name, "/-") {
			name = "`" + name + "`" // a word that sentences have, too
		}
		own, other := beyond, interfaces
		if strings.Contains(name, "-") { // case does not count in a header's name
			name, own, other = strings.ToLower(name), strings.ToLower(own), strings.ToLower(other)
		}
		if strings.Contains(other, name) || !strings.Contains(own, name) {
			t.Errorf("%s does not stand in its half of docs/interface.md alone", name)
		}
	}
}
