package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/engine/models"
)

var assetsDir = filepath.Join("..", "..", "assets")

func readLock(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(assetsDir, "lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLockFileMatchesDefaultManifest(t *testing.T) {
	t.Parallel()
	l, err := parseLock(readLock(t))
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Parse(models.Default())
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]result{l.Conversion.Model.To: l.Conversion.Model, l.Conversion.Basis.To: l.Conversion.Basis}
	for _, p := range l.Packages {
		for _, r := range p.Members {
			results[r.To] = r.result
		}
	}
	for _, f := range m.Files {
		want := result{To: "packs/default/" + f.Name, Size: f.Size, SHA256: f.SHA256}
		if got := results[want.To]; got != want {
			t.Errorf("lock file has %+v, the default manifest %+v", got, want)
		}
	}
	if l.Conversion.Dim != m.Embedder.Dim {
		t.Errorf("lock file converts to %d numbers, the manifest has %d", l.Conversion.Dim, m.Embedder.Dim)
	}
	if _, ok := results[l.Conversion.From]; !ok {
		t.Errorf("no package gives %s, which the conversion reads", l.Conversion.From)
	}
}

// Other platforms get a clear error.
func TestPinnedPlatformsGetOneRuntime(t *testing.T) {
	t.Parallel()
	l, err := parseLock(readLock(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64"} {
		packages, err := l.packages(platform)
		if err != nil {
			t.Errorf("%s: %v", platform, err)
		}
		n := 0
		for _, p := range packages {
			if p.Package == "onnxruntime" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d packages of ONNX Runtime, want 1", platform, n)
		}
	}
	if _, err := l.packages("plan9/386"); err == nil || !strings.Contains(err.Error(), "plan9/386") {
		t.Errorf("plan9/386: error is %v, want one that names it", err)
	}
}

func TestParseLockRefusesUnsafePaths(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	f := func(want string, change func(l object, p, m object)) {
		t.Helper()
		l := make(object)
		if err := json.Unmarshal(readLock(t), &l); err != nil {
			t.Fatal(err)
		}
		p := l["packages"].([]any)[0].(object)
		change(l, p, p["members"].([]any)[0].(object))
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseLock(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one that says %q", err, want)
		}
	}
	for _, to := range []string{"../x", "lib/../../x", "/lib/x", "lib//x", "tools/x", "lock.json", `lib\x`, ""} {
		f(fmt.Sprintf("%q", to), func(_, _, m object) { m["to"] = to })
	}
	f("path", func(_, _, m object) { m["path"] = "" })
	f("bounds", func(_, _, m object) { m["size"] = 1 << 40 })
	f("bounds", func(_, _, m object) { m["sha256"] = "ab" })
	f("bounds", func(_, p, _ object) { p["size"] = 1 << 40 })
	f("bounds", func(_, p, _ object) { p["members"] = []any{} })
	for _, name := range []string{"", "--index-url=x", "a b", "a\nb", "a==1"} {
		f("not plain", func(_, p, _ object) { p["package"] = name })
		f("not plain", func(_, p, _ object) { p["version"] = name })
	}
	f("kind", func(_, p, _ object) { p["kind"] = "curl" })
	f("integrity", func(_, p, _ object) { p["kind"] = "npm" })
	f("tag", func(_, p, _ object) { delete(p, "tag") })
	f("format", func(l, _, _ object) { l["format"] = 2 })
	f("unknown", func(l, _, _ object) { l["mirror"] = "x" })
	f("conversion", func(l, _, _ object) { l["conversion"].(object)["model"].(object)["to"] = "../x" })
}

func FuzzParseLock(f *testing.F) {
	f.Add([]byte(`{"format":1,"packages":[],"conversion":{}}`))
	f.Add([]byte(`{"format":1,"packages":[{"package":"a","version":"1","kind":"npm","members":[{"path":"p","to":"lib/x"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseLock(data)
		if err != nil {
			return
		}
		for _, p := range l.Packages {
			if strings.HasPrefix(p.Package, "-") || strings.ContainsAny(p.Package+p.Version, " \n") {
				t.Errorf("package %q version %q passed", p.Package, p.Version)
			}
			for _, m := range p.Members {
				if !filepath.IsLocal(filepath.FromSlash(m.To)) {
					t.Errorf("result %q leads elsewhere", m.To)
				}
			}
		}
	})
}

func TestExtraPacksMatchManifests(t *testing.T) {
	t.Parallel()
	l, err := parseLock(readLock(t))
	if err != nil {
		t.Fatal(err)
	}
	results := make(map[string]result)
	for _, p := range l.Packages {
		for _, m := range p.Members {
			results[m.To] = m.result
		}
	}
	for _, e := range l.Packs {
		data, ok := models.Builtin(e.Name)
		if !ok {
			t.Fatalf("there is no manifest of %q", e.Name)
		}
		m, err := models.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		made := make(map[string]result)
		for _, p := range e.Packages {
			for _, m := range p.Members {
				results[m.To] = m.result
			}
		}
		for _, r := range e.results() {
			made[r.To] = r
		}
		for _, f := range m.Files {
			want := result{To: "packs/" + e.Name + "/" + f.Name, Size: f.Size, SHA256: f.SHA256}
			if got := made[want.To]; got != want {
				t.Errorf("lock file has %+v, the manifest of %s %+v", got, e.Name, want)
			}
		}
		for _, c := range e.Copies {
			if from := results[c.From]; from.SHA256 != c.SHA256 {
				t.Errorf("%s is a copy of %s, which is %+v", c.To, c.From, from)
			}
		}
		for _, from := range []string{e.Index, e.Weights} {
			if _, ok := results[from]; !ok {
				t.Errorf("no package gives %s, which the pack %s is made of", from, e.Name)
			}
		}
	}
}

func TestParseLockRefusesUnsafeExtraPack(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	f := func(want string, change func(e object)) {
		t.Helper()
		l := make(object)
		if err := json.Unmarshal(readLock(t), &l); err != nil {
			t.Fatal(err)
		}
		change(l["packs"].([]any)[0].(object))
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseLock(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one that says %q", err, want)
		}
	}
	for _, name := range []string{"", "default", "../x", "unknown"} {
		f("no manifest", func(e object) { e["name"] = name })
	}
	f("is not in packs/dlib/", func(e object) { e["model"].(object)["to"] = "packs/default/fr_detect.onnx" })
	f("not of the default pack", func(e object) { e["copies"].([]any)[0].(object)["from"] = "../x" })
	f("not plain", func(e object) { e["packages"].([]any)[0].(object)["package"] = "-x" })
}

func TestUnnamedExtraPackIsNotFetched(t *testing.T) {
	t.Parallel()
	l, err := parseLock(readLock(t))
	if err != nil {
		t.Fatal(err)
	}
	plain, asked := new(setup), new(setup)
	if err := errors.Join(plain.add(l, ""), asked.add(l, "dlib")); err != nil {
		t.Fatal(err)
	}
	if len(plain.packages) != 0 || plain.extra.results() != nil || plain.extra.texts() != nil {
		t.Errorf("without a name: %+v", plain)
	}
	if len(asked.packages) == 0 || len(asked.extra.results()) != 3 || len(asked.extra.texts()) != 1 {
		t.Errorf("with its name: %+v", asked)
	}
	if err := plain.add(l, "nobody"); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("an unknown name: %v", err)
	}
}
