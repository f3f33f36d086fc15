package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// planter plants faults.
type planter struct {
	faults, lanes, blows int
	seed                 uint64
	core                 map[string]bool // files without faults
}

// fault replaces the bytes from from to to of a file.
type fault struct {
	file     string
	line     int
	from, to int
	with     string
	what     string
}

var swapped = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
}

func (p planter) run(ctx context.Context) error {
	files, err := p.files(ctx)
	if err != nil {
		return err
	}
	var all []fault
	for _, file := range files {
		found, err := faultsOf(file)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	fmt.Fprintf(os.Stdout, "%d places in %d files; seed %d\n\n| fault | the world |\n|---|---|\n", len(all), len(files), p.seed)
	r := rand.New(rand.NewPCG(p.seed, 60))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var next, done atomic.Int64
	lanes, ctx := errgroup.WithContext(ctx)
	for range p.lanes {
		lanes.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(all) || int(done.Load()) >= p.faults {
					return nil
				}
				built, verdict, err := p.world(ctx, all[n], uint64(n))
				if err != nil {
					return err
				}
				if built && int(done.Add(1)) <= p.faults {
					fmt.Fprintf(os.Stdout, "| `%s:%d` %s | %s |\n", all[n].file, all[n].line, all[n].what, verdict)
				}
			}
		})
	}
	return lanes.Wait()
}

// files returns the files of the product that worlds run and the page does not name.
func (p planter) files(ctx context.Context) ([]string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-tags", "hashicorpmetrics,stale", "-f", `{{range .GoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}`, "./sim")
	list.Dir, list.Stderr = "scripts", os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.Lines(string(out)) {
		pkg, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, err := filepath.Rel(root, path)
		if err != nil || !strings.HasPrefix(pkg, "facet/") || strings.HasPrefix(name, "scripts/") || strings.HasPrefix(name, "..") || p.core[name] {
			continue
		}
		if top, _, _ := strings.Cut(name, "/"); top == "cmd" || strings.Contains(name, "test") {
			continue
		}
		files = append(files, name)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// faultsOf returns all faults of a file.
func faultsOf(file string) (list []fault, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	add := func(from, to token.Pos, with, what string) {
		at := set.Position(from)
		list = append(list, fault{file, at.Line, at.Offset, set.Position(to).Offset, with, what})
	}
	text := func(n ast.Node) string { return string(src[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset]) }
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if with, ok := swapped[n.Op]; ok {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), with.String(), "has `"+with.String()+"` for `"+n.Op.String()+"`")
			}
		case *ast.IfStmt:
			add(n.Cond.Pos(), n.Cond.End(), "!("+text(n.Cond)+")", "negates its condition")
		case *ast.ExprStmt:
			if _, ok := n.X.(*ast.CallExpr); ok {
				add(n.Pos(), n.End(), "{}", "leaves a call out")
			}
		case *ast.ReturnStmt:
			if last := len(n.Results) - 1; last >= 0 && text(n.Results[last]) == "err" {
				add(n.Results[last].Pos(), n.Results[last].End(), "nil", "returns no error")
			}
		}
		return true
	})
	return list, nil
}

// world builds the worlds with a fault and runs one. built is false if the fault does not compile.
func (p planter) world(ctx context.Context, f fault, seed uint64) (built bool, verdict string, err error) {
	dir, err := os.MkdirTemp("", "facet-core-")
	if err != nil {
		return false, "", err
	}
	defer os.RemoveAll(dir)
	src, err := os.ReadFile(f.file)
	if err != nil {
		return false, "", err
	}
	path, err := filepath.Abs(f.file)
	if err != nil {
		return false, "", err
	}
	planted, overlay, binary := filepath.Join(dir, filepath.Base(f.file)), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "worlds")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: planted}})
	if err != nil {
		return false, "", err
	}
	for name, data := range map[string][]byte{planted: slices.Concat(src[:f.from], []byte(f.with), src[f.to:]), overlay: replace} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return false, "", err
		}
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags", "hashicorpmetrics,stale", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./sim")
	build.Dir = "scripts"
	if err := build.Run(); err != nil {
		return false, "", ctx.Err()
	}
	run := exec.CommandContext(ctx, binary, "-test.run", "^TestNothingIsLostWhileWorldsAreAttacked$", "-test.timeout", "10m",
		"-attack-faults", fmt.Sprint(p.blows), "-attack-seed", fmt.Sprint(60_000+seed))
	run.Dir, run.Env = filepath.Join("scripts", "sim"), append(os.Environ(), "GOMAXPROCS=1", "TMPDIR="+dir)
	out, err := run.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return true, "holds", ctx.Err()
	}
	return true, said(out), nil
}

// said returns the line in which a test says what failed.
func said(out []byte) string {
	for line := range bytes.Lines(out) {
		text := strings.TrimSpace(string(line))
		if strings.Contains(text, "_test.go:") || strings.HasPrefix(text, "panic:") || strings.HasPrefix(text, "fatal error:") {
			return strings.ReplaceAll(text[:min(len(text), 200)], "|", "\\|")
		}
	}
	return "ended without a word"
}
