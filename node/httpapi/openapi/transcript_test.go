package openapi_test

import (
	"encoding/base64"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"facet/internal/must"
)

// step is one request of a transcript and its answer.
type step struct {
	where, method, path, body string
	// named are the names of the headers and of the query's parameters in lower case.
	named  []string
	status int
	answer string
}

// transcripts reads the recorded transcripts of the server.
func transcripts(t *testing.T) []step {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	substitution := regexp.MustCompile(`\{\{(=?)([^{}]*)\}\}`)
	var all []step
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.Do(t, err)
		_, rest, _ := strings.Cut(string(text), "== ")
		for part := range strings.SplitSeq(rest, "\n== ") {
			part = substitution.ReplaceAllStringFunc(part, func(s string) string {
				m := substitution.FindStringSubmatch(s)
				if m[1] == "=" {
					return m[2] // an id of an earlier answer
				}
				return base64.StdEncoding.EncodeToString([]byte(m[2]))
			})
			all = append(all, readStep(t, filepath.Base(file), part))
		}
	}
	return all
}

func readStep(t *testing.T, file, text string) step {
	t.Helper()
	request, answer, _ := strings.Cut(text, "\n--\n")
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(head, "\n")
	s := step{where: file + ": " + lines[0], body: strings.TrimSpace(body)}
	for _, line := range lines[1:] {
		first, rest, _ := strings.Cut(line, " ")
		if header, ok := strings.CutSuffix(first, ":"); ok {
			s.named = append(s.named, strings.ToLower(header))
		}
		if first == "as" || first == "key" || strings.HasSuffix(first, ":") {
			continue
		}
		s.method = first
		var query string
		s.path, query, _ = strings.Cut(rest, "?")
		for part := range strings.SplitSeq(query, "&") {
			name, _, _ := strings.Cut(part, "=")
			s.named = append(s.named, strings.ToLower(name))
		}
	}
	got := strings.Split(strings.TrimSpace(answer), "\n")
	var err error
	if s.status, err = strconv.Atoi(got[0]); err != nil || s.method == "" {
		t.Fatalf("%s: can't be read: %v", s.where, err)
	}
	if last := got[len(got)-1]; len(got) > 1 && (last[0] == '{' || last[0] == '[') {
		s.answer = last
	}
	return s
}

// served reads the server's routing table from its source: "METHOD /a/{}/b".
func served(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "*.go"))
	must.Do(t, err)
	table := map[string]bool{}
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		must.Do(t, err)
		ast.Inspect(syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != "operations" || len(spec.Values) != 1 {
				return true
			}
			for _, row := range spec.Values[0].(*ast.CompositeLit).Elts {
				fields := row.(*ast.CompositeLit).Elts
				method, _ := strconv.Unquote(fields[0].(*ast.BasicLit).Value)
				pattern, _ := strconv.Unquote(fields[1].(*ast.BasicLit).Value)
				table[method+" "+strings.Join(segments(pattern), "/")] = true
			}
			return false
		})
	}
	if len(table) < 10 {
		t.Fatalf("found %d rows of the routing table only", len(table))
	}
	return table
}

func TestDocumentMatchesTheRoutingTable(t *testing.T) {
	t.Parallel()
	doc, table := load(t), served(t)
	for _, op := range operations(doc) {
		row := op.method + " " + strings.Join(segments(op.path), "/")
		if !table[row] {
			t.Errorf("%s (%s %s) is documented and not served", op.OperationID, op.method, op.path)
		}
		delete(table, row)
	}
	delete(table, "GET openapi.json") // the description does not describe itself
	for row := range table {
		t.Errorf("%s is served and not documented", row)
	}
}

// An answer of a documented operation has a documented status, and its body fits
// the schema of that status. A request that succeeded fits the schema of requests.
func TestTranscriptsSatisfyTheDocument(t *testing.T) {
	t.Parallel()
	doc, table := load(t), served(t)
	all, checked := operations(doc), 0
	for _, s := range transcripts(t) {
		i := slices.IndexFunc(all, func(op operation) bool {
			return op.method == s.method && fits(segments(op.path), segments(s.path)) &&
				(strings.HasPrefix(s.path, "/v1.1/jobs/") || !strings.HasSuffix(s.path, "/"))
		})
		if i < 0 {
			if s.status < 400 && s.path != "/openapi.json" {
				t.Errorf("%s: %s %s answers %d and is not documented", s.where, s.method, s.path, s.status)
			}
			continue
		}
		op := all[i]
		if !table[s.method+" "+strings.Join(segments(op.path), "/")] && (s.status == 404 || s.status == 405) {
			continue
		}
		checked++
		s.check(t, doc, op)
	}
	if checked < 100 {
		t.Errorf("checked %d steps only", checked)
	}
}

func (s step) check(t *testing.T, doc *openapi3.T, op operation) {
	t.Helper()
	r := op.Responses.Status(s.status)
	if r == nil {
		t.Errorf("%s: %s does not document %d", s.where, op.OperationID, s.status)
		return
	}
	m := r.Value.Content.Get("application/json")
	if (m == nil) != (s.answer == "") {
		t.Errorf("%s: %s %d: has a body: %v, documented: %v", s.where, op.OperationID, s.status, s.answer != "", m != nil)
		return
	}
	if m != nil {
		if err := validate(doc, m.Schema.Value, s.answer); err != nil {
			t.Errorf("%s: %s %d %s: %v", s.where, op.OperationID, s.status, s.answer, err)
		}
	}
	if s.status < 300 && op.RequestBody != nil {
		if err := validate(doc, op.RequestBody.Value.Content.Get("application/json").Schema.Value, s.body); err != nil {
			t.Errorf("%s: a body that is accepted does not fit %s: %v", s.where, op.OperationID, err)
		}
	}
}
