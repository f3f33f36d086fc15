package openapi_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"facet/internal/must"
	"facet/node/httpapi/openapi"
)

// load reads and validates the document, its examples and defaults too.
func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openapi.Document())
	must.Do(t, err)
	return doc
}

// operation is one operation of the document with its path and method.
type operation struct {
	*openapi3.Operation
	method, path string
}

func operations(doc *openapi3.T) []operation {
	var all []operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, operation{op, method, path})
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.OperationID, b.OperationID) })
	return all
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	doc := load(t)
	if !doc.IsOpenAPI31OrLater() {
		t.Errorf("version %q", doc.OpenAPI)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaDefaultsValidation(), openapi3.EnableSchemaPatternValidation()); err != nil {
		t.Error(err)
	}
	// The interface has 18 operations in version 1.1, 6 in version 1 and 10 for
	// tenants; the progress of a job has two paths. The list of jobs, matches, merges,
	// comparisons, the three of checks, the six of duplicates, the three of cases, the four of
	// the audit log and whoami go beyond it.
	if got := len(operations(doc)); got != 18+6+10+1+16+4+1 {
		t.Errorf("%d operations", got)
	}
}

// TestEveryExampleFitsItsSchema also checks the examples in components, which
// kin-openapi leaves out.
func TestEveryExampleFitsItsSchema(t *testing.T) {
	t.Parallel()
	doc := load(t)
	n := 0
	check := func(where string, m *openapi3.MediaType) {
		if m == nil {
			return
		}
		values := []any{}
		if m.Example != nil {
			values = append(values, m.Example)
		}
		for _, e := range m.Examples {
			values = append(values, e.Value.Value)
		}
		if len(values) == 0 {
			t.Errorf("%s has no example", where)
		}
		for _, v := range values {
			n++
			if err := doc.ValidateSchemaJSON(m.Schema.Value, v, openapi3.EnableJSONSchema2020()); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
	}
	for _, op := range operations(doc) {
		if op.RequestBody != nil {
			check(op.OperationID+" request", op.RequestBody.Value.Content.Get("application/json"))
		}
		for status, r := range op.Responses.Map() {
			check(op.OperationID+" "+status, r.Value.Content.Get("application/json"))
		}
	}
	if n < 300 {
		t.Errorf("saw %d examples only", n)
	}
}

func TestEveryOperationIsComplete(t *testing.T) {
	t.Parallel()
	doc := load(t)
	seen := map[string]bool{}
	braces := regexp.MustCompile(`\{(\w+)\}`)
	for _, op := range operations(doc) {
		if op.OperationID == "" || seen[op.OperationID] {
			t.Errorf("%s %s: operationId %q", op.method, op.path, op.OperationID)
		}
		seen[op.OperationID] = true
		if op.Summary == "" || len(op.Tags) != 1 || doc.Tags.Get(op.Tags[0]) == nil || op.Security == nil {
			t.Errorf("%s: no summary, no known tag or no security", op.OperationID)
		}
		for _, status := range []int{400, 403, 408, 413, 429, 431, 500} {
			if op.Responses.Status(status) == nil {
				t.Errorf("%s: no %d", op.OperationID, status)
			}
		}
		if op.Responses.Default() != nil {
			t.Errorf("%s: a default response would let any status pass", op.OperationID)
		}
		names := braces.FindAllStringSubmatch(op.path, -1)
		for _, m := range names {
			if op.Parameters.GetByInAndName("path", m[1]) == nil {
				t.Errorf("%s: %s is not declared", op.OperationID, m[0])
			}
		}
		if named := len(names) > 0 && op.OperationID != "createTag"; named && op.Responses.Status(404) == nil {
			t.Errorf("%s: no 404", op.OperationID)
		}
		writes := (op.method == "POST" || op.method == "PUT" || op.method == "PATCH") && !strings.Contains(op.path, "/face/") && !strings.Contains(op.path, "/tags/") && op.OperationID != "setDifferent" && op.OperationID != "decideCase"
		if keyed := op.Parameters.GetByInAndName("header", "Idempotency-Key") != nil; keyed != writes {
			t.Errorf("%s: Idempotency-Key is declared: %v, want %v", op.OperationID, keyed, writes)
		}
		for status, r := range op.Responses.Map() {
			if r.Value.Headers["x-request-id"] == nil {
				t.Errorf("%s %s: no x-request-id", op.OperationID, status)
			}
		}
	}
}

func TestEveryComponentIsUsed(t *testing.T) {
	t.Parallel()
	text := string(openapi.Document())
	var doc struct {
		Components map[string]map[string]json.RawMessage
	}
	must.Do(t, json.Unmarshal([]byte(text), &doc))
	for kind, all := range doc.Components {
		for name := range all {
			used := strings.Contains(text, `"#/components/`+kind+`/`+name+`"`)
			if kind == "securitySchemes" {
				used = strings.Contains(text, `"`+name+`": []`)
			}
			if !used {
				t.Errorf("%s %s is not used", kind, name)
			}
		}
	}
}

// Generators of typed clients need the type of each array's items, and a name for
// each alternative that no other schema has.
func TestGeneratorsFindItemsAndTitles(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for name := range load(t).Components.Schemas {
		names[name] = true
	}
	var document any
	must.Do(t, json.Unmarshal(openapi.Document(), &document))
	arrays, alternatives := 0, 0
	walk(document, "", func(where string, node map[string]any) {
		if node["type"] == "array" {
			arrays++
			if _, ok := node["items"].(map[string]any); !ok {
				t.Errorf("%s: an array without items", where)
			}
		}
		list, _ := node["oneOf"].([]any)
		for _, one := range list {
			alternatives++
			title, _ := one.(map[string]any)["title"].(string)
			if _, named := one.(map[string]any)["$ref"]; named {
				continue
			}
			if title == "" || names[title] {
				t.Errorf("%s: an alternative is titled %q", where, title)
			}
			names[title] = true
		}
	})
	if arrays < 10 || alternatives < 10 {
		t.Errorf("saw %d arrays and %d alternatives only", arrays, alternatives)
	}
}

// walk calls f for each object of a JSON document.
func walk(value any, where string, f func(where string, node map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		f(where, value)
		for name, child := range value {
			walk(child, where+"/"+name, f)
		}
	case []any:
		for i, child := range value {
			walk(child, where+"/"+strconv.Itoa(i), f)
		}
	}
}

// The check of the transcripts can fail.
func TestWrongBodyIsFound(t *testing.T) {
	t.Parallel()
	doc := load(t)
	refuse := func(schema, body string) {
		t.Helper()
		if err := validate(doc, doc.Components.Schemas[schema].Value, body); err == nil {
			t.Errorf("%s takes %s", schema, body)
		}
	}
	refuse("ClientError", `{"message":"x","errorCode":1002,"errorType":"InvalidRequest"}`)
	refuse("ClientError", `{"message":"x","errorCode":1003,"errorType":"Timeout"}`)
	refuse("ClientErrorV1", `{"message":"x","errorCode":2003,"errorType":"MultipleFaces"}`)
	refuse("ServerError", `{"message":"x"}`)
	refuse("Registered", `{"id":"1e63d116-3ac2-8001-b5aa-86ca32e92d45"}`)
	refuse("Candidates", `{"candidates":[]}`)
	refuse("Point", `{"x":1,"y":"2"}`)
	refuse("NoSubjects", `{"message":"x","subjects":[1],"total":1}`)
	refuse("SubjectEntry", `{"id":"1e63d116-3ac2-8001-b5aa-86ca32e92d45","eventId":"1e63d116-3ac2-8001-b5aa-86ca32e92d45","status":"X","lastUpdated":"2026-01-02T03:04:06.678+00:00"}`)
	refuse("VerifyRequest", `{"face":"a","id":"b","probe":"c"}`)
	refuse("VerifyRequest", `{"probe":"c"}`)
	refuse("SearchRequest", `{"probe":"c","limit":51}`)
}

// validate checks a JSON text against a schema.
func validate(doc *openapi3.T, schema *openapi3.Schema, body string) error {
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		return err
	}
	return doc.ValidateSchemaJSON(schema, value, openapi3.EnableJSONSchema2020())
}

// segments splits a raw path or a pattern; every parameter becomes {}.
func segments(path string) []string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") || p == "*" {
			parts[i] = "{}"
		}
	}
	return parts
}

// fits reports whether the segments of a path fit those of a pattern.
func fits(pattern, path []string) bool {
	return slices.EqualFunc(pattern, path, func(p, s string) bool { return p == s || p == "{}" && s != "" })
}
