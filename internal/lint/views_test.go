package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"testing"

	"facet/internal/must"
)

// views returns the types, but those of tests, that are a struct of their own package under another name: such
// a type has all of the struct's fields and none of its methods, so it hides how many methods the struct has.
func views(files []file) (list []string) {
	structs := map[string]bool{} // by folder and name
	each := func(visit func(f file, spec *ast.TypeSpec)) {
		for _, f := range files {
			if f.test {
				continue
			}
			for _, decl := range f.syntax.Decls {
				if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
					for _, spec := range types.Specs {
						visit(f, spec.(*ast.TypeSpec)) //nolint:forcetypeassert // of a declaration of types
					}
				}
			}
		}
	}
	each(func(f file, spec *ast.TypeSpec) {
		if _, ok := spec.Type.(*ast.StructType); ok {
			structs[f.dir+"."+spec.Name.Name] = true
		}
	})
	each(func(f file, spec *ast.TypeSpec) {
		if of := receiver(spec.Type); !spec.Assign.IsValid() && structs[f.dir+"."+of] {
			list = append(list, f.pos(spec)+": "+spec.Name.Name+" is "+of)
		}
	})
	return list
}

func TestNoTypeIsStructUnderOtherName(t *testing.T) {
	t.Parallel()
	for _, v := range views(goFiles(t)) {
		t.Errorf("%s under another name: make it a part with a state of its own, or give the struct its methods", v)
	}
}

func TestPlantedViewIsFound(t *testing.T) {
	t.Parallel()
	f := func(name, body string, want ...string) {
		t.Helper()
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, name, "package p\ntype Shard struct{ n int }\n"+body, 0)
		must.Do(t, err)
		if got := views([]file{{name, path.Dir(name), name == "a_test.go", syntax, fset}}); !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", body, got, want)
		}
	}
	f("a.go", "type Means Shard", "a.go:3: Means is Shard")
	f("a.go", "type (\n\tNotes Shard\n)", "a.go:4: Notes is Shard")
	f("a_test.go", "type Means Shard")
	f("a.go", "type Means struct{ *Shard }")
	f("a.go", "type Count int\ntype Total Count\ntype Other other.Shard")
}
