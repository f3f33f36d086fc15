package httpapi

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"facet/internal/must"
)

// documentOfAnswers is where each answer of the interface has a row:
//
//	| `GET /v1.1/subjects` | 404 | `v11.txt`: past the end |
//	| `POST /v1.1/subjects` | 400 InvalidRequest GalleryFull | `TestA`, `TestB` |
//
// What shows it is a step of a transcript or tests. Rows that are about no single
// operation have words in the first cell.
const documentOfAnswers = "testdata/answers.table"

// sharedAnswers are the statuses that every operation shares: they have rows of
// their own.
var sharedAnswers = []string{"400", "408", "413", "429", "431", "500"}

// shownAnswer is one answer of an operation: a status with error type and reason.
type shownAnswer struct{ operation, answer string }

type row struct {
	shownAnswer
	shownBy string
	line    int
}

var (
	rowCells       = regexp.MustCompile("^\\| (.+) \\| (.+) \\| (`.+) \\|$")
	testName       = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	stepTitle      = regexp.MustCompile("^`([\\w-]+\\.txt)`: (.+)$")
	inAnswerType   = regexp.MustCompile(`"errorType":"(\w+)"`)
	inAnswerReason = regexp.MustCompile(`"reason":"(\w+)"`)
)

// rows reads the tables of answers.
func rows(t *testing.T) (list []row) {
	t.Helper()
	text, err := os.ReadFile(documentOfAnswers)
	must.Do(t, err)
	for n, line := range strings.Split(string(text), "\n") {
		m := rowCells.FindStringSubmatch(line)
		if m != nil && (testName.MatchString(m[3]) || stepTitle.MatchString(m[3])) {
			list = append(list, row{shownAnswer{strings.Trim(m[1], "`"), m[2]}, m[3], n + 1})
		}
	}
	if len(list) < 100 {
		t.Fatalf("%d rows only", len(list))
	}
	return list
}

// shown returns the answers that each step of a transcript, "file: title", shows.
func shown(t *testing.T) map[string][]shownAnswer {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	steps := map[string][]shownAnswer{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.Do(t, err)
		_, rest, _ := strings.Cut(string(text), "== ")
		for step := range strings.SplitSeq(rest, "\n== ") {
			request, got, _ := strings.Cut(step, "\n--\n")
			head, _, _ := strings.Cut(request, "\n\n")
			title, head, _ := strings.Cut(head, "\n")
			answer, _, _ := strings.Cut(got, "\n")
			for _, part := range []*regexp.Regexp{inAnswerType, inAnswerReason} {
				if m := part.FindStringSubmatch(got); m != nil {
					answer += " " + m[1]
				}
			}
			where := filepath.Base(file) + ": " + title // a title may come twice
			steps[where] = append(steps[where], shownAnswer{operationOf(head), answer})
		}
	}
	return steps
}

// plainMessages are messages that others prescribe (decision D4), or whose end is a value.
var plainMessages = regexp.MustCompile(`^(Forbidden|Missing Authentication Token|Signature expired: .*|[A-Z][^:]*: \S+)$`)

// sentence is a message for people: it starts with a capital letter or the name of a
// field, has a full stop, and no colons like those between the layers of Go's errors.
var sentence = regexp.MustCompile(`^([A-Z]|[a-z]+[A-Za-z]* (must|is required|is not))[^:]*(: [^:]+)?\.$`)

func TestMessagesAreSentences(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	must.Do(t, err)
	message, seen := regexp.MustCompile(`"message":("(?:[^"\\]|\\.)*")`), map[string]bool{}
	for _, file := range append(files, "openapi/openapi.json") {
		text, err := os.ReadFile(file)
		must.Do(t, err)
		for _, m := range message.FindAllSubmatch(text, -1) {
			var plain string
			must.Do(t, json.Unmarshal(m[1], &plain))
			if !seen[plain] && !sentence.MatchString(plain) && !plainMessages.MatchString(plain) {
				t.Errorf("%s: %q is no sentence", file, plain)
			}
			seen[plain] = true
		}
	}
	if len(seen) < 50 {
		t.Errorf("%d messages only", len(seen))
	}
}

// operationOf returns the operation that a step of a transcript requests, or "".
func operationOf(head string) string {
	for line := range strings.SplitSeq(head, "\n") {
		method, target, _ := strings.Cut(line, " ")
		if method != strings.ToUpper(method) || !strings.HasPrefix(target, "/") {
			continue
		}
		target, _, _ = strings.Cut(target, "?")
		if op, _, err := served.find(method, strings.Split(target, "/")[1:]); err == nil {
			return op.method + " " + op.pattern
		}
	}
	return ""
}

// tests returns the names of all tests of the tree.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	name := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path == "../../assets" {
			return cmp.Or(err, fs.SkipDir)
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	must.Do(t, err)
	return names
}

func TestEachRowOfAnswersIsShown(t *testing.T) {
	t.Parallel()
	steps, names := shown(t), tests(t)
	seen := map[shownAnswer]int{}
	for _, r := range rows(t) {
		if before := seen[r.shownAnswer]; before > 0 {
			t.Errorf("line %d: %v has a row in line %d", r.line, r.shownAnswer, before)
		}
		seen[r.shownAnswer] = r.line
		if m := stepTitle.FindStringSubmatch(r.shownBy); m != nil {
			if got := steps[m[1]+": "+m[2]]; !slices.Contains(got, r.shownAnswer) {
				t.Errorf("line %d: %s shows %v, not %v", r.line, r.shownBy, got, r.shownAnswer)
			}
			continue
		}
		for _, m := range testName.FindAllStringSubmatch(r.shownBy, -1) {
			if !names[m[1]] {
				t.Errorf("line %d: there is no test %s", r.line, m[1])
			}
		}
	}
}

func TestEveryAnswerHasARow(t *testing.T) {
	t.Parallel()
	has := map[shownAnswer]bool{}
	status := map[shownAnswer]bool{}
	for _, r := range rows(t) {
		has[r.shownAnswer] = true
		code, _, _ := strings.Cut(r.answer, " ")
		status[shownAnswer{r.operation, code}] = true
	}
	for where, answers := range shown(t) {
		for _, a := range answers {
			if a.operation != "" && !has[a] {
				file, title, _ := strings.Cut(where, ": ")
				t.Errorf("there is no row\n| `%s` | %s | `%s`: %s |", a.operation, a.answer, file, title)
			}
		}
	}
	text, err := os.ReadFile("openapi/openapi.json")
	must.Do(t, err)
	var document struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	must.Do(t, json.Unmarshal(text, &document))
	documented := 0
	for path, methods := range document.Paths {
		for method, op := range methods {
			o, _, err := served.find(strings.ToUpper(method), strings.Split(path, "/")[1:])
			if err != nil {
				continue // for the first, TestDocumentMatchesTheRoutingTable
			}
			documented++
			for code := range op.Responses {
				if a := (shownAnswer{o.method + " " + o.pattern, code}); !slices.Contains(sharedAnswers, code) && !status[a] {
					t.Errorf("%v is documented and has no row", a)
				}
			}
		}
	}
	if documented < 30 {
		t.Errorf("%d operations are documented", documented)
	}
}
