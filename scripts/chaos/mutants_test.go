package main

import (
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEachPlantedBugCompiles(t *testing.T) {
	top, err := workingTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(patches, "mutants/*.patch")
	if err != nil {
		t.Fatal(err)
	}
	var hunted []string
	for _, p := range plantedBugs {
		hunted = append(hunted, path.Join("mutants", p.name+".patch"))
	}
	slices.Sort(hunted)
	if !slices.Equal(files, hunted) {
		t.Errorf("the patches are %q, and the bugs with a hunter %q", files, hunted)
	}
	for _, file := range files {
		bug := strings.TrimSuffix(path.Base(file), ".patch")
		t.Run(bug, func(t *testing.T) {
			changed, overlay, err := plant(t.Context(), top, filepath.Join(t.TempDir(), "planted"), bug)
			if err != nil {
				t.Fatalf("%v\nmake the patch anew: apply it by hand, and git diff", err)
			}
			args := []string{"build", "-tags", "hashicorpmetrics", "-overlay", overlay}
			for _, name := range changed {
				if pkg := "./" + path.Dir(name); !slices.Contains(args, pkg) {
					args = append(args, pkg)
				}
			}
			build := exec.CommandContext(t.Context(), "go", args...)
			build.Dir = top
			if text, err := build.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}
