package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files of the chart")

// namespace and kubernetes are what charts are rendered for.
const (
	namespace  = "faces"
	kubernetes = "1.35.0"
)

func helm(t *testing.T, args ...string) []byte {
	t.Helper()
	program := filepath.Join(rootDir, toolsFolder, "helm")
	if _, err := os.Stat(program); err != nil {
		t.Skip("helm is not there: \"make chart-tools\" builds it")
	}
	cmd := exec.Command(program, append(args, "--kube-version", kubernetes)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s%s", strings.Join(args, " "), err, out, complaint.String())
	}
	return out
}

func TestChartPassesLinter(t *testing.T) {
	t.Parallel()
	helm(t, "lint", "--strict", filepath.Join(rootDir, chartFolder))
}

// Each file of golden/ is the chart with the values of the same name.
func TestChartRendersGolden(t *testing.T) {
	t.Parallel()
	golden := filepath.Join(rootDir, "deploy", "helm", "golden")
	cases, err := filepath.Glob(filepath.Join(golden, "*.values.yaml"))
	if err != nil || len(cases) < 2 {
		t.Fatalf("%d files of values, %v", len(cases), err)
	}
	for _, values := range cases {
		got := helm(t, "template", "facet", filepath.Join(rootDir, chartFolder), "--namespace", namespace, "--values", values)
		file := strings.TrimSuffix(values, ".values.yaml") + ".yaml"
		// The version changes with each release.
		got = bytes.ReplaceAll(got, []byte(versionOf(t)), []byte("VERSION"))
		if *rewrite {
			must.Do(t, os.WriteFile(file, got, 0o644))
		}
		want, err := os.ReadFile(file)
		must.Do(t, err)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-rewrite writes it anew):\n%s", filepath.Base(file), diff)
		}
	}
}
