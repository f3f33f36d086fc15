package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"facet/cmd/facet/cli"
	"facet/internal/must"
)

// altered copies the files of dir and changes one of them.
func altered(t *testing.T, dir, name string, change func([]byte) []byte) (copied, before, after string) {
	t.Helper()
	copied = t.TempDir()
	entries, err := os.ReadDir(dir)
	must.Do(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && e.Name() == name {
			old := sha256.Sum256(b)
			b = change(b)
			sum := sha256.Sum256(b)
			before, after = hex.EncodeToString(old[:]), hex.EncodeToString(sum[:])
		}
		must.Do(t, err)
		must.Do(t, os.WriteFile(filepath.Join(copied, e.Name()), b, 0o600))
	}
	return copied, before, after
}

func flipped(b []byte) []byte {
	b[len(b)/2] ^= 1
	return b
}

func longer(b []byte) []byte { return append(b, 0) } // it can still be loaded

// One byte of a library or a model stops the node before the file is loaded.
func TestChangedFileStopsNode(t *testing.T) {
	t.Parallel()
	files := assets(t)
	pack, library := files[1], files[3]
	lib := filepath.Base(library)
	serve := func(pack, library string, more ...string) (string, error) {
		t.Helper()
		out, err := command(t, append([]string{
			"serve", "--dir", t.TempDir(), "--certificates", "/none", "--cluster-key", "/none", "--gossip-key", "/none",
			"--models", pack, "--onnxruntime", library,
		}, more...)...).CombinedOutput()
		return string(out), err
	}
	refused := func(pack, library, want, got, file string, more ...string) {
		t.Helper()
		out, err := serve(pack, library, more...)
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != cli.ExitFailed {
			t.Errorf("%s: %v", file, err)
		}
		for _, w := range []string{want, got, file, `"make setup"`} {
			if !strings.Contains(out, w) {
				t.Errorf("%s: it says %q, without %q", file, out, w)
			}
		}
		if strings.Contains(out, `"face engine"`) {
			t.Errorf("%s was loaded: %s", file, out)
		}
	}
	loaded := func(library string, more ...string) {
		t.Helper()
		if out, err := serve(pack, library, more...); err == nil || !strings.Contains(out, `"face engine"`) {
			t.Errorf("%s was not loaded: %s", library, out) // the key file is missing, later on
		}
	}
	loaded(library)
	dir, want, got := altered(t, filepath.Dir(library), lib, flipped)
	refused(pack, filepath.Join(dir, lib), want, got, filepath.Join(dir, lib))
	for _, model := range []string{"fr_detect.onnx", "fr_feature_192.onnx", "basis.f32"} {
		dir, want, got := altered(t, pack, model, flipped)
		refused(dir, library, want, got, model)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(library), "libturbojpeg.so.0")); err == nil {
		dir, want, got := altered(t, filepath.Dir(library), "libturbojpeg.so.0", longer)
		refused(pack, filepath.Join(dir, lib), want, got, filepath.Join(dir, "libturbojpeg.so.0"))
	}

	dir, want, got = altered(t, filepath.Dir(library), lib, longer)
	other := filepath.Join(dir, lib)
	refused(pack, other, want, got, other)
	loaded(other, "--onnxruntime-sha256", got)
	refused(pack, library, got, want, library, "--onnxruntime-sha256", got)
	if out, err := serve(pack, library, "--onnxruntime-sha256", "abc"); err == nil || !strings.Contains(out, "64 hexadecimal digits") {
		t.Errorf("no hash: %v, %s", err, out)
	}
}
