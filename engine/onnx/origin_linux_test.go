package onnx_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"facet/engine/enginetest"
	"facet/engine/onnx"
	"facet/internal/must"
	"facet/internal/pinned"
)

// ownLibrary is set in the environment of a process that loads this library by its hash.
const ownLibrary = "FACET_TEST_OWN_LIBRARY"

// A library with the operator's hash loads what lies beside it (RUNPATH=$ORIGIN).
func TestOwnLibraryFindsItsNeighbours(t *testing.T) {
	t.Parallel()
	const needed = "libstdc++.so.6"
	if path := os.Getenv(ownLibrary); path != "" {
		must.Do(t, onnx.Load(path, pinned.Hash("libonnxruntime.so")))
		maps, err := os.ReadFile("/proc/self/maps")
		if want := filepath.Join(filepath.Dir(path), needed); err != nil || !strings.Contains(string(maps), want) {
			t.Errorf("%s was not loaded: %v", want, err)
		}
		return
	}
	library := enginetest.Library(t)
	must.Do(t, onnx.Load(library, ""))
	maps, err := os.ReadFile("/proc/self/maps")
	must.Do(t, err)
	system := regexp.MustCompile(`/\S*/libstdc\+\+\.so\S*`).FindString(string(maps))
	if system == "" {
		t.Skip("ONNX Runtime needs no " + needed + " here")
	}
	dir := t.TempDir()
	for from, to := range map[string]string{library: "libonnxruntime.so", system: needed} {
		b, err := os.ReadFile(from)
		must.Do(t, err)
		must.Do(t, os.WriteFile(filepath.Join(dir, to), b, 0o600))
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestOwnLibraryFindsItsNeighbours$")
	cmd.Env = append(os.Environ(), ownLibrary+"="+filepath.Join(dir, "libonnxruntime.so"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
