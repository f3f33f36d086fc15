package httpapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/must"
)

// A file that makes a handler, or lists them, is one of the handlers; all others are the frame that carries requests
// to them. The test compares names of the package, not methods.
func TestFrameKnowsNoHandler(t *testing.T) {
	t.Parallel()
	frame, handlers := make(map[string]*ast.File), make(map[string]string)
	names, err := filepath.Glob("*.go")
	must.Do(t, err)
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must.Do(t, err)
		switch {
		case strings.HasSuffix(name, "_test.go"):
		case makesHandler(f):
			for declared := range f.Scope.Objects {
				handlers[declared] = name
			}
		default:
			frame[name] = f
		}
	}
	if len(frame) < 10 || len(handlers) < 100 {
		t.Fatalf("%d files of the frame, %d names of handlers", len(frame), len(handlers))
	}
	for name, f := range frame {
		for _, used := range f.Unresolved {
			if at, ok := handlers[used.Name]; ok {
				t.Errorf("%s uses %s of %s", name, used.Name, at)
			}
		}
	}
}

// makesHandler reports whether a file calls reads, changes or unaudited.
func makesHandler(f *ast.File) (makes bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name, _ := call.Fun.(*ast.Ident)
			makes = makes || name != nil && (name.Name == "reads" || name.Name == "changes" || name.Name == "unaudited")
		}
		return !makes
	})
	return makes
}
