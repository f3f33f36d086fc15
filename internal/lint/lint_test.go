package lint

import (
	"bufio"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"facet/internal/must"
)

const (
	functionLinesMax     = 70
	testFunctionLinesMax = 120
	fileLinesMax         = 500
	methodsMax           = 40
)

// methodsOf are the types with another limit than methodsMax: node.Node only wires its
// parts, the client has one method for each operation of the interface.
var methodsOf = map[string]int{"node.Node": 25, "clients/go.Client": 62, "raftfsm/transport.Transport": 41, "scripts/chaos/traffic.Traffic": 43}

// layers are the folders of the product, from the top down: a package imports
// its own layer and those below.
var layers = []string{"cmd", "node", "router", "raftfsm", "shard", "engine"}

// testkit calls clusters in tests. testkitUsers are the folders whose code that is no
// test may import it.
const testkit = "internal/testkit"

var testkitUsers = []string{testkit, "node/nodetest", "scripts"}

// owners are the only folders that may import a library, or a part of raftfsm. A folder
// that ends in "/." is itself one, and its subfolders are not.
var owners = map[string][]string{
	"facet/raftfsm/health":                   {"raftfsm/.", "raftfsm/logstore", "raftfsm/snapshots", "raftfsm/transport"},
	"facet/raftfsm/logstore":                 {"raftfsm/.", "raftfsm/logstore", "raftfsm/snapshots"},
	"facet/raftfsm/snapshots":                {"raftfsm/.", "raftfsm/transport"},
	"facet/raftfsm/transport":                {"raftfsm/."},
	"github.com/hashicorp/raft":              {"raftfsm/.", "raftfsm/logstore", "raftfsm/snapshots", "raftfsm/transport"},
	"github.com/hashicorp/raft-boltdb":       {"raftfsm/logstore"},
	"go.etcd.io/bbolt":                       {"raftfsm/logstore"},
	"github.com/hashicorp/memberlist":        {"node/membership"},
	"github.com/yalue/onnxruntime_go":        {"engine/onnx"},
	"github.com/valyala/fasthttp":            {"node", "scripts/sim"},
	"github.com/spf13/cobra":                 {"cmd/facet"},
	"filippo.io/age":                         {"cmd/facet/authority"},
	"golang.org/x/term":                      {"cmd/facet/process"},
	"golang.org/x/mod":                       {"node", "internal/tiles", "shard/auditlog", "cmd/facet/auditing", "cmd/facet/witness", "scripts/chaos/ledger", "scripts/packages"},
	"github.com/transparency-dev/formats":    {"cmd/facet/auditing", "cmd/facet/witness"},
	"github.com/knadh/koanf":                 {"cmd/facet"},
	"github.com/prometheus/client_golang":    {"node"},
	"gocloud.dev":                            {"node/bucket", "cmd/facet/importing"},
	"github.com/ebitengine/purego":           {"engine/imaging/turbo"},
	"go.opentelemetry.io/collector":          {"scripts/traces"},
	"go.opentelemetry.io/otel":               {"internal/trace", "node/tracing", "node/httpapi"},
	"go.opentelemetry.io/otel/sdk":           {"node/tracing", "node/httpapi"}, // httpapi measures what it costs
	"github.com/gen2brain/heic":              {"engine/imaging/heif"},
	"github.com/tetratelabs/wazero":          {"engine/imaging/heif"},
	"github.com/vishvananda":                 {"scripts/chaos/lan"},
	"github.com/anishathalye/porcupine":      {"scripts/chaos"},
	"github.com/google/go-containerregistry": {"scripts/packages"},
	"github.com/CycloneDX/cyclonedx-go":      {"scripts/packages"},
}

// deterministic are the packages whose outcome must depend on state and command
// alone; they may not import these.
var (
	deterministic = []string{"raftfsm/metafsm", "raftfsm/shardfsm"}
	undetermined  = []string{"time", "math/rand", "math/rand/v2", "crypto/rand", "os", "net", "runtime"}
)

// nodeParts are the parts of a node: node wires them, they know nothing of it. A part may
// import replicas, and no other part.
var nodeParts = []string{
	"node/admin", "node/backup", "node/checks", "node/holder", "node/keys", "node/limits", "node/links", "node/placement", "node/replicas",
}

// nodeUsers are the folders of cmd/facet that may import node; the others speak with nodes
// by node/wire.
var nodeUsers = []string{"cmd/facet/config", "cmd/facet/serve"}

// file is one Go file of the tree.
type file struct {
	name   string // slash path from the root
	dir    string
	test   bool
	syntax *ast.File
	fset   *token.FileSet
}

func (f file) pos(n ast.Node) string {
	return f.name + ":" + strconv.Itoa(f.fset.Position(n.Pos()).Line)
}

func (f file) imports() []string {
	var list []string
	for _, spec := range f.syntax.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		list = append(list, p)
	}
	return list
}

func root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return filepath.Dir(filepath.Dir(dir))
}

// tracked reports whether a folder belongs to the source: not what set-up fetched,
// nor what a build or a run left.
func tracked(rel string) bool {
	if base := path.Base(rel); base == "__pycache__" || base == "node_modules" || len(base) > 1 && base[0] == '.' && base != ".ci" {
		return false
	}
	return !slices.Contains([]string{
		"bin", "dist", "dev", "demo-data", "cluster-data",
		"assets/lib", "assets/packs", "assets/photos", "assets/cache", "assets/venv", "assets/venv-bench", "assets/tools",
	}, rel)
}

func walk(each func(rel, full string)) error {
	top := root()
	return filepath.WalkDir(top, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, full)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() && !tracked(rel) {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() && rel != ".git" { // a file in a linked work tree
			each(rel, full)
		}
		return nil
	})
}

func goFiles(t *testing.T) []file {
	t.Helper()
	list, err := parsed()
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	if len(list) < 10 {
		t.Fatalf("found %d Go files only: is this the module's root?", len(list))
	}
	return list
}

// parsed returns all Go files. The tests share them, because parsing takes most of their time.
var parsed = sync.OnceValues(func() (list []file, all error) {
	err := walk(func(rel, full string) {
		if path.Ext(rel) != ".go" {
			return
		}
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, full, nil, parser.ParseComments)
		all = errors.Join(all, err)
		list = append(list, file{rel, path.Dir(rel), strings.HasSuffix(rel, "_test.go"), syntax, fset})
	})
	return list, errors.Join(all, err)
})

func layer(dir string) int {
	top, _, _ := strings.Cut(dir, "/")
	return slices.Index(layers, top)
}

func within(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }

func TestImportsPointDownTheLayers(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		from := layer(f.dir)
		for _, imp := range f.imports() {
			own, ok := strings.CutPrefix(imp, "facet/")
			if within(own, "scripts") && !within(f.dir, "scripts") {
				t.Errorf("%s imports %s: only scripts may", f.name, own)
			}
			if within(own, testkit) && !f.test && !slices.ContainsFunc(testkitUsers, func(u string) bool { return within(f.dir, u) }) {
				t.Errorf("%s imports %s: only tests and %v may", f.name, own, testkitUsers)
			}
			if !ok || f.test && within(f.dir, "internal") || within(f.dir, testkit) {
				continue
			}
			to := layer(own)
			if from >= 0 && to >= 0 && to < from {
				t.Errorf("%s: %s imports %s, which lies above it", f.name, f.dir, own)
			}
			if strings.HasPrefix(f.dir, "internal/") && to >= 0 {
				t.Errorf("%s: internal packages lie below all layers, but this imports %s", f.name, own)
			}
		}
	}
}

// The calls between nodes know nothing of what they carry.
func TestCallsImportNothingOfRouter(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if !within(f.dir, "router/calls") {
			continue
		}
		for _, imp := range f.imports() {
			if within(imp, "facet/router") || within(imp, "facet/shard") || within(imp, "facet/raftfsm/metafsm") || within(imp, "facet/raftfsm/shardfsm") {
				t.Errorf("%s imports %s: what is above the calls imports them", f.name, imp)
			}
		}
	}
}

func TestPartsOfNodeStandAlone(t *testing.T) {
	t.Parallel()
	part := func(dir string) string {
		i := slices.IndexFunc(nodeParts, func(p string) bool { return within(dir, p) })
		if i < 0 {
			return ""
		}
		return nodeParts[i]
	}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		from := part(f.dir)
		for _, imp := range f.imports() {
			own := strings.TrimPrefix(imp, "facet/")
			to := part(own)
			switch {
			case from != "" && (own == "node" || to != "" && to != from && to != "node/replicas"):
				t.Errorf("%s: a part of a node imports %s", f.name, own)
			case own == "node" && within(f.dir, "cmd/facet") && !slices.ContainsFunc(nodeUsers, func(u string) bool { return within(f.dir, u) }):
				t.Errorf("%s imports node, which only %v may", f.name, nodeUsers)
			}
		}
	}
}

func TestLibrariesStayWithTheirOwners(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		for _, imp := range f.imports() {
			for lib, folders := range owners {
				if !within(imp, lib) || f.test && within(f.dir, "internal") {
					continue
				}
				if !slices.ContainsFunc(folders, func(o string) bool { return f.dir+"/." == o || within(f.dir, o) }) {
					t.Errorf("%s imports %s, which only %v may", f.name, imp, folders)
				}
			}
		}
	}
}

func TestStateMachinesAreDeterministic(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.test || !slices.Contains(deterministic, f.dir) {
			continue
		}
		for _, imp := range f.imports() {
			if slices.Contains(undetermined, imp) || strings.HasPrefix(imp, "net/") || strings.HasPrefix(imp, "os/") {
				t.Errorf("%s: a state machine may not import %s", f.name, imp)
			}
		}
	}
}

// A pool hands out what an earlier request left; internal/stale makes tests see it.
func TestPoolsAreOverwrittenInTests(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.test || layer(f.dir) < 0 || slices.Contains(f.imports(), "facet/internal/stale") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Pool" {
				if p, ok := s.X.(*ast.Ident); ok && p.Name == "sync" {
					t.Errorf("%s: a sync.Pool, but this file does not call internal/stale", f.pos(n))
				}
			}
			return true
		})
	}
}

func TestPackagesHaveDocs(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		want := "Package " + f.syntax.Name.Name + " "
		if f.syntax.Name.Name == "main" {
			want = "Command "
		}
		has := f.syntax.Doc != nil && strings.HasPrefix(f.syntax.Doc.Text(), want)
		documented[f.dir] = documented[f.dir] || has
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

func TestFunctionsAndFilesStayShort(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if lines := f.fset.Position(f.syntax.End()).Line; lines > fileLinesMax && !ast.IsGenerated(f.syntax) {
			t.Errorf("%s has %d lines, more than %d", f.name, lines, fileLinesMax)
		}
		limit := functionLinesMax
		if f.test {
			limit = testFunctionLinesMax
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
			if lines > limit {
				t.Errorf("%s: %s has %d lines, more than %d", f.pos(fn), fn.Name.Name, lines, limit)
			}
		}
	}
}

// TestTypesHaveFewMethods counts the methods that a type declares; those of a type that it
// embeds count for that type.
func TestTypesHaveFewMethods(t *testing.T) {
	t.Parallel()
	methods := map[string]int{}
	for _, f := range goFiles(t) {
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && !f.test && fn.Recv != nil {
				methods[f.dir+"."+receiver(fn.Recv.List[0].Type)]++
			}
		}
	}
	for name, limit := range methodsOf {
		if methods[name] == 0 {
			t.Errorf("there is no type %s, which has a limit of %d methods", name, limit)
		}
	}
	for name, n := range methods {
		limit, own := methodsOf[name]
		if !own {
			limit = methodsMax
		}
		if n > limit {
			t.Errorf("%s has %d methods, more than %d: split what belongs together into a type of its own", name, n, limit)
		}
	}
}

// receiver returns the name of a method's type, without its pointer and its type parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

// TestNothingNamesMachine keeps paths of one computer and the addresses of
// package registries out of the tree: packages come through their clients.
func TestNothingNamesMachine(t *testing.T) {
	t.Parallel()
	banned := regexp.MustCompile(`(/` + `root/|/` + `home/[a-z]|/` + `work/|\.\./` + `shared|https?://(` + `registry|proxy|files|static|repo1|deb)\.)`)
	must.Do(t, walk(func(rel, full string) {
		if slices.Contains([]string{".png", ".jpg", ".onnx", ".so", ".bin", ".f32", ".out"}, path.Ext(rel)) {
			return
		}
		f, err := os.Open(full)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		scanner := bufio.NewScanner(f)
		scanner.Buffer(nil, 1<<20)
		for n := 1; scanner.Scan(); n++ {
			if hit := banned.FindString(scanner.Text()); hit != "" {
				t.Errorf("%s:%d names %q", rel, n, hit)
			}
		}
	}))
}

// linked returns the packages that cmd/facet consists of, built with tags.
func linked(t *testing.T, tags string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-tags", tags, "./cmd/facet")
	cmd.Dir = root()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(out))
}

// The server once linked fonts for one picture and a module for one bar.
func TestServerLinksNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	const s3, google, azure = "gocloud.dev/blob/s3blob", "cloud.google.com/go", "github.com/Azure"
	f := func(tags string, with, without []string) {
		t.Helper()
		deps := linked(t, tags)
		has := func(module string) bool {
			return slices.ContainsFunc(deps, func(dep string) bool { return within(dep, module) })
		}
		for _, module := range with {
			if !has(module) {
				t.Errorf("bin/facet with tags %s does not link %s", tags, module)
			}
		}
		for _, module := range without {
			if has(module) {
				t.Errorf("bin/facet with tags %s links %s", tags, module)
			}
		}
	}
	drawing := []string{"gonum.org/v1/plot", "github.com/vbauerster/mpb"}
	f("hashicorpmetrics", []string{s3, google, azure}, drawing)
	f("hashicorpmetrics,slim", []string{s3}, append(drawing, google, azure))
}

// TestPinnedModulesStay holds the one version that must not move: the store
// behind Raft needs a package that go-metrics 0.7 dropped.
func TestPinnedModulesStay(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile(filepath.Join(root(), "go.mod"))
	must.Do(t, err)
	if !strings.Contains(string(mod), "github.com/hashicorp/go-metrics v0.6.1") {
		t.Error("go.mod must keep github.com/hashicorp/go-metrics v0.6.1")
	}
}

// TestProductRequiresWhatItImports keeps what only the harnesses need out of the
// product's go.mod: the workspace would hide it.
func TestProductRequiresWhatItImports(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile(filepath.Join(root(), "go.mod"))
	must.Do(t, err)
	imports := map[string]bool{}
	for _, f := range goFiles(t) {
		if within(f.dir, "scripts") || within(f.dir, "clients") {
			continue
		}
		for _, imp := range f.imports() {
			imports[imp] = true
		}
	}
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1)
	if len(direct) < 10 {
		t.Fatalf("found %d requirements in go.mod", len(direct))
	}
	for _, m := range direct {
		used := false
		for imp := range imports {
			used = used || within(imp, m[1])
		}
		if !used {
			t.Errorf("go.mod requires %s, which the product does not import", m[1])
		}
	}
}
