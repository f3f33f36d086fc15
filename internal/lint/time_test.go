package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"facet/internal/must"
)

// In a bubble of testing/synctest a wait takes no time and ends at the same moment in each run. A wait in
// real time makes a test slow, or makes it fail on a busy machine.
var (
	waits    = []string{"time.Sleep", "time.After", "time.Tick", "time.NewTimer", "time.NewTicker"}
	clocks   = []string{"time.Now", "time.Since", "time.Until"} // a loop with one of them polls
	bubbles  = []string{"synctest.Test", "nodetest.Run", "nodetest.Virtual", "nodetest.Bubble"}
	realTime = []string{"_real_test.go", "_timing_test.go"} // tests of processes, disks and speed

	// outside are the folders whose tests wait for other processes.
	outside = []string{"internal/e2e", "scripts", "clients"}
)

// waiting is a function of a package's tests: what it does outside of bubbles.
type waiting struct {
	root  bool     // go test calls it, and its file is none of realTime
	waits []string // "file:line" of each
	calls []string // names of the package's functions
	runs  bool     // it has a function as parameter, and a bubble
}

// waitsOf returns the functions of the test files of one package by their names, methods with a
// dot before it. Methods of one name count as one.
func waitsOf(files []file) map[string]*waiting {
	all := map[string]*waiting{}
	for range 3 { // a function that calls one that runs bubbles runs bubbles, too
		runners := slices.Clone(bubbles)
		for name, w := range all {
			if w.runs {
				runners = append(runners, name)
			}
		}
		clear(all)
		for _, f := range files {
			for _, d := range f.syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					name := fn.Name.Name
					if fn.Recv != nil {
						name = "." + name
					}
					if all[name] == nil {
						all[name] = &waiting{}
					}
					all[name].read(f, fn, runners)
				}
			}
		}
	}
	return all
}

func (w *waiting) read(f file, fn *ast.FuncDecl, runners []string) {
	started := strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" || strings.HasPrefix(fn.Name.Name, "Benchmark") || strings.HasPrefix(fn.Name.Name, "Fuzz")
	w.root = started && fn.Recv == nil && !slices.ContainsFunc(realTime, func(end string) bool { return strings.HasSuffix(f.name, end) })
	takes := slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool { _, ok := p.Type.(*ast.FuncType); return ok })
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if slices.Contains(runners, called(n)) {
				w.runs = w.runs || takes
				return false
			}
			if slices.Contains(waits, called(n)) {
				w.waits = append(w.waits, f.pos(n))
			}
		case *ast.ForStmt:
			if n.Cond != nil && readsClock(n.Cond) || n.Post != nil && readsClock(n.Post) {
				w.waits = append(w.waits, f.pos(n))
			}
		case *ast.SelectorExpr:
			w.calls = append(w.calls, "."+n.Sel.Name)
		case *ast.Ident:
			w.calls = append(w.calls, n.Name)
		}
		return true
	})
}

// called returns the name of a called function, with the name before its dot.
func called(c *ast.CallExpr) string {
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok && (x.Name == "time" || x.Name == "synctest" || x.Name == "nodetest") {
			return x.Name + "." + fun.Sel.Name
		}
		return "." + fun.Sel.Name
	}
	return ""
}

func readsClock(in ast.Node) (found bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		found = found || ok && slices.Contains(clocks, called(c))
		return true
	})
	return found
}

// realWaits returns the waits in real time of each test of a package.
func realWaits(files []file) map[string][]string {
	all, found := waitsOf(files), map[string][]string{}
	for test, w := range all {
		if !w.root {
			continue
		}
		seen := map[string]bool{test: true}
		for next := []string{test}; len(next) > 0; next = next[1:] {
			w := all[next[0]]
			found[test] = append(found[test], w.waits...)
			for _, name := range w.calls {
				if all[name] != nil && !seen[name] {
					seen[name] = true
					next = append(next, name)
				}
			}
		}
	}
	return found
}

func TestNoTestWaitsInRealTime(t *testing.T) {
	t.Parallel()
	packages := map[string][]file{} // those of a folder are two: p and p_test
	for _, f := range goFiles(t) {
		if f.test && !slices.ContainsFunc(outside, func(dir string) bool { return within(f.dir, dir) }) {
			name := f.dir + " " + f.syntax.Name.Name
			packages[name] = append(packages[name], f)
		}
	}
	used := map[string]bool{}
	for _, files := range packages {
		dir := files[0].dir
		for test, at := range realWaits(files) {
			name := dir + " " + test
			if len(at) > 0 && waitsAllowed[name] == "" && waitsAllowed[dir] == "" {
				t.Errorf("%s waits in real time at %s: use a bubble (testing/synctest, node/nodetest), or move it to a file *%s if it needs the system",
					name, strings.Join(slices.Compact(at), ", "), strings.Join(realTime, " or *"))
			}
			used[name], used[dir] = used[name] || len(at) > 0, used[dir] || len(at) > 0
		}
	}
	for name := range waitsAllowed {
		if !used[name] {
			t.Errorf("waitsAllowed has %s, which waits no more", name)
		}
	}
}

func TestPlantedWaitIsFound(t *testing.T) {
	t.Parallel()
	f := func(name, body string, want ...string) {
		t.Helper()
		const helpers = `package p
func eventually(f func() bool) { for !f() { time.Sleep(1) } }
func (x *x) polls() { for end := time.Now(); time.Now().Before(end); { } }
func bubble(t *testing.T, f func()) { synctest.Test(t, func(t *testing.T) { f() }) }
`
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, name, helpers+body, 0)
		must.Do(t, err)
		if got := realWaits([]file{{name, path.Dir(name), true, syntax, fset}})["TestA"]; !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", body, got, want)
		}
	}
	f("a_test.go", `func TestA(t *testing.T) { <-time.After(1) }`, "a_test.go:5")
	f("a_test.go", `func TestA(t *testing.T) { eventually(nil) }`, "a_test.go:2")
	f("a_test.go", `func TestA(t *testing.T) { x.polls() }`, "a_test.go:3")
	f("a_test.go", `func TestA(t *testing.T) { bubble(t, func() { eventually(nil); time.Sleep(1) }) }`)
	f("a_test.go", `func TestA(t *testing.T) { nodetest.Run(t, x.polls) }`)
	f("a_real_test.go", `func TestA(t *testing.T) { eventually(nil) }`)
}
