package lint

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"facet/internal/must"
)

// Where text names tests: by name, which "…" may cut; by a pattern of "go test"; and
// by the patterns of make and of the harness that hunts planted bugs.
var (
	namedTest    = regexp.MustCompile(`\b((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*[a-z0-9])(…)?`)
	namedPart    = regexp.MustCompile("`([A-Z][A-Za-z0-9]+)…`")
	namedPattern = regexp.MustCompile(`\s-(?:run|bench|fuzz)[ =]+(?:'([^']+)'|([^\s'"$\\)` + "`" + `]+))`)
	makePattern  = regexp.MustCompile(`(?m)^[A-Z]+_TESTS := (.*)$`)
	huntPattern  = regexp.MustCompile(`\btests: "\./([^"]+)", run: "([^"]+)"`)
	makeVariable = regexp.MustCompile(`\$\([A-Z_]+\)`)
)

// testNames returns the names of the tests, fuzz targets and benchmarks of each folder, and
// those of all folders under "".
func testNames(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	for _, f := range goFiles(t) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test && fn.Recv == nil && namedTest.MatchString(fn.Name.Name) {
				for _, dir := range []string{f.dir, ""} {
					names[dir] = append(names[dir], fn.Name.Name)
				}
			}
		}
	}
	return names
}

// TestNamedTestsExist finds the names and patterns of tests that a renaming left
// behind: "go test -run" passes in silence when its pattern matches nothing.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	names := testNames(t)
	matchesIn := func(dir, where, pattern string) {
		t.Helper()
		for part := range strings.SplitSeq(strings.ReplaceAll(pattern, `\|`, "|"), "|") {
			part, _, _ = strings.Cut(part, "/") // subtests
			expression, err := regexp.Compile(part)
			if err != nil {
				t.Errorf("%s: %q is no pattern: %v", where, part, err)
				continue
			}
			found := part == "^$$" || part == "^$" || strings.HasPrefix(part, "$(") || strings.HasPrefix(part, "%")
			for _, name := range names[dir] {
				found = found || expression.MatchString(name)
			}
			if !found {
				t.Errorf("%s: no test of ./%s has a name that matches %q", where, dir, part)
			}
		}
	}
	matches := func(where, pattern string) {
		t.Helper()
		matchesIn("", where, pattern)
	}
	checked := 0
	must.Do(t, walk(func(rel, full string) {
		inChaos := strings.HasPrefix(rel, "scripts/chaos/") && path.Ext(rel) == ".go"
		program := path.Ext(rel) == ".go" || path.Ext(rel) == ".sh" || rel == "Makefile"
		if !program && path.Ext(rel) != ".md" && path.Ext(rel) != ".yml" {
			return
		}
		b, err := os.ReadFile(full)
		if err != nil {
			t.Error(err)
			return
		}
		text := string(b)
		for _, m := range makePattern.FindAllStringSubmatch(text, -1) {
			matches(rel, strings.Trim(makeVariable.ReplaceAllString(m[1], ""), "|"))
		}
		for _, m := range namedPattern.FindAllStringSubmatch(text, -1) {
			matches(rel, m[1]+m[2])
		}
		for _, m := range namedPart.FindAllStringSubmatch(text, -1) {
			matches(rel, m[1])
		}
		for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
			if m[2] == "" && !program {
				matches(rel, "^"+m[1]+"$")
			} else if m[1] != "FuzzXxx" {
				matches(rel, m[1])
			}
			checked++
		}
		if inChaos {
			for _, m := range huntPattern.FindAllStringSubmatch(text, -1) {
				matchesIn(m[1], rel, m[2])
				checked++
			}
		}
	}))
	if checked < 50 {
		t.Errorf("found %d names and patterns only", checked)
	}
}

const testNameMax = 50

var (
	articleFirst = regexp.MustCompile(`^Test(A|An|The)[A-Z][a-z]`)
	relativeLink = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
)

func TestNamesOfTestsAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range testNames(t)[""] {
		if len(name) > testNameMax || articleFirst.MatchString(name) {
			t.Errorf("%s: name subject, verb and outcome in at most %d characters, without an article; a longer promise is a comment", name, testNameMax)
		}
	}
}

func TestLinksLeadToFiles(t *testing.T) {
	t.Parallel()
	must.Do(t, walk(func(rel, full string) {
		if path.Ext(rel) != ".md" {
			return
		}
		b, err := os.ReadFile(full)
		if err != nil {
			t.Error(err)
			return
		}
		for _, m := range relativeLink.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(full), m[1])); err != nil {
				t.Errorf("%s leads to %s, which does not exist", rel, m[1])
			}
		}
	}))
}
