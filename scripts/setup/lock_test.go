package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// Each file of a pack is fetched, made, copied or in the repository, as its manifest says.
func TestLockFileMatchesManifests(t *testing.T) {
	t.Parallel()
	l, err := parseLock(readLock(t))
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]result{}
	for _, p := range l.Packages {
		for _, r := range p.Members {
			results[r.To] = r.result
		}
	}
	for _, c := range l.Conversions {
		if _, ok := results[c.From]; !ok {
			t.Errorf("no package gives %s, which the conversion reads", c.From)
		}
		results[c.Model.To] = c.Model
	}
	for _, c := range l.Copies {
		if from := results[c.From]; from.SHA256 != c.SHA256 {
			t.Errorf("%s is a copy of %s, which is %+v", c.To, c.From, from)
		}
		results[c.To] = c.result
	}
	for _, name := range models.Names() {
		data, _ := models.Builtin(name)
		m, err := models.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Files {
			want := result{To: "packs/" + name + "/" + f.Name, Size: f.Size, SHA256: f.SHA256}
			if file, ok := models.BuiltinFiles(name)[f.Name]; ok {
				sum := sha256.Sum256(file)
				results[want.To] = result{To: want.To, Size: int64(len(file)), SHA256: hex.EncodeToString(sum[:])}
			}
			if got := results[want.To]; got != want {
				t.Errorf("lock file has %+v, the manifest of %s %+v", got, name, want)
			}
		}
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
	first := func(l object, list string) object { return l[list].([]any)[0].(object) }
	f("conversion", func(l, _, _ object) { first(l, "conversions")["model"].(object)["to"] = "../x" })
	f("unknown", func(l, _, _ object) { first(l, "conversions")["kind"] = "other" })
	f("not a plain path", func(l, _, _ object) { first(l, "conversions")["model"].(object)["to"] = "packs/../x" })
	f("not a plain path", func(l, _, _ object) { first(l, "copies")["from"] = "../x" })
	f("not in lib", func(l, _, _ object) { first(l, "copies")["to"] = "x/y" })
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
