package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"facet/internal/must"
)

func TestEachPlantedBugCompiles(t *testing.T) {
	top, err := workingTree(t.Context())
	must.Do(t, err)
	files, err := fs.Glob(patches, "mutants/*.patch")
	must.Do(t, err)
	var hunted []string
	for _, p := range plantedBugs {
		hunted = append(hunted, path.Join("mutants", p.name+".patch"))
	}
	slices.Sort(hunted)
	if !slices.Equal(files, hunted) {
		t.Errorf("the patches are %q, and the bugs with a hunter %q", files, hunted)
	}
	facet := facetPackages(t, top)
	for _, file := range files {
		bug := strings.TrimSuffix(path.Base(file), ".patch")
		t.Run(bug, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "planted")
			changed, _, err := plant(t.Context(), top, dir, bug)
			if err != nil {
				t.Fatalf("%v\nmake the patch anew: apply it by hand, and git diff", err)
			}
			if err := facet.check(top, dir, changed); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnusedNameOfPlantedBugIsFound(t *testing.T) {
	top, err := workingTree(t.Context())
	must.Do(t, err)
	const name = "router/subjects/slots.go"
	text, err := os.ReadFile(filepath.Join(top, name))
	must.Do(t, err)
	dir := t.TempDir()
	planted := filepath.Join(dir, name)
	text = append(text, "\nfunc planted() { unused := 7 }\n"...)
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(planted), 0o700), os.WriteFile(planted, text, 0o600)))
	if err := facetPackages(t, top).check(top, dir, []string{name}); err == nil || !strings.Contains(err.Error(), "unused") {
		t.Errorf("the error is %v", err)
	}
}

// listed are the packages of facet and those that they import.
type listed struct {
	positions *token.FileSet
	importer  types.Importer
	inFolder  map[string]*listedPackage
	parsed    map[string]*ast.File // those that no bug has changed
}

// listedPackage is what go list says of a package.
type listedPackage struct {
	ImportPath, Dir, Export string
	CompiledGoFiles         []string
}

var listedOnce struct {
	sync.Mutex
	*listed
}

// facetPackages returns the packages of facet, which are listed once.
func facetPackages(t *testing.T, top string) *listed {
	t.Helper()
	listedOnce.Lock()
	defer listedOnce.Unlock()
	if listedOnce.listed == nil {
		l := listPackages(t, top)
		listedOnce.listed = &l
	}
	return listedOnce.listed
}

// listPackages compiles facet without a planted bug, as far as go test has not.
func listPackages(t *testing.T, top string) listed {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-tags", "hashicorpmetrics,stale", "-deps", "-export", "-compiled",
		"-json=ImportPath,Dir,Export,CompiledGoFiles", "./...")
	var failure bytes.Buffer
	list.Dir, list.Stderr = top, &failure
	text, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &failure)
	}
	exports, inFolder := map[string]string{}, map[string]*listedPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		p := new(listedPackage)
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath], inFolder[p.Dir] = p.Export, p
	}
	positions := token.NewFileSet()
	return listed{positions: positions, inFolder: inFolder, parsed: map[string]*ast.File{}, importer: importer.ForCompiler(positions, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})}
}

// check finds errors of types in the packages of changed files, which lie in dir. Their names are relative
// to top.
func (l *listed) check(top, dir string, changed []string) error {
	replaced := map[string]string{}
	for _, name := range changed {
		replaced[filepath.Join(top, name)] = filepath.Join(dir, name)
	}
	var errs []error
	checked := map[string]bool{}
	for _, name := range changed {
		folder := filepath.Join(top, filepath.Dir(name))
		if checked[folder] {
			continue
		}
		checked[folder] = true
		errs = append(errs, l.checkPackage(folder, replaced))
	}
	return errors.Join(errs...)
}

// checkPackage finds errors of types in the package of a folder.
func (l *listed) checkPackage(folder string, replaced map[string]string) error {
	p := l.inFolder[folder]
	if p == nil {
		return fmt.Errorf("%s has no package", folder)
	}
	var files []*ast.File
	for _, name := range p.CompiledGoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		planted, changed := replaced[name]
		file := l.parsed[name]
		if file == nil || changed {
			var err error
			if file, err = parser.ParseFile(l.positions, cmp.Or(planted, name), nil, parser.SkipObjectResolution); err != nil {
				return err
			}
		}
		if !changed {
			l.parsed[name] = file
		}
		files = append(files, file)
	}
	config := types.Config{Importer: l.importer, Sizes: types.SizesFor("gc", runtime.GOARCH)}
	_, err := config.Check(p.ImportPath, l.positions, files, nil)
	return err
}
