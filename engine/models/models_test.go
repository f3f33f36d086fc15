package models

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"facet/internal/must"
)

// object is a JSON object of a manifest under change.
type object = map[string]any

// changed returns the default manifest after a change.
func changed(t testing.TB, change func(m object)) []byte {
	t.Helper()
	m := make(object)
	must.Do(t, json.Unmarshal(Default(), &m))
	change(m)
	data, err := json.Marshal(m)
	must.Do(t, err)
	return data
}

func TestDefaultReturnsACopy(t *testing.T) {
	t.Parallel()
	clear(Default())
	if _, err := Parse(Default()); err != nil {
		t.Errorf("after a caller cleared its bytes: %v", err)
	}
}

// refusals returns checks of manifests that Parse refuses, as from says after a change: what f
// gets is refused by the schema, too, and what code gets is what a schema can't say.
func refusals(t *testing.T, from func(testing.TB, func(m object)) []byte) (f, code func(want string, change func(m object))) {
	t.Helper()
	schema := compiledSchema(t)
	check := func(bySchema bool) func(want string, change func(m object)) {
		return func(want string, change func(m object)) {
			t.Helper()
			data := from(t, change)
			if _, err := Parse(data); !errors.Is(err, ErrManifest) || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want one that wraps ErrManifest and says %q", err, want)
			}
			if err := valid(t, schema, data); (err != nil) != bySchema {
				t.Errorf("%s: by the schema %v, want an error: %v", want, err, bySchema)
			}
		}
	}
	return check(true), check(false)
}

func TestParseNamesInvalidField(t *testing.T) {
	t.Parallel()
	f, code := refusals(t, changed)
	sub := func(m object, field string) object { return m[field].(object) }
	file := func(m object, i int) object { return m["files"].([]any)[i].(object) }
	point := func(m object, i int) object { return sub(m, "calibration")["points"].([]any)[i].(object) }

	f("format is 2", func(m object) { m["format"] = 2 })
	f("name", func(m object) { m["name"] = "a b" })
	f("name", func(m object) { m["name"] = "" })
	f("version", func(m object) { m["version"] = strings.Repeat("1", maxNameBytes+1) })
	f("note", func(m object) { m["note"] = strings.Repeat("x", maxTextBytes+1) })
	f("unknown", func(m object) { m["colour"] = "blue" })

	f("no file of role", func(m object) { m["files"] = []any{} })
	f("files: more than", func(m object) { m["files"] = make([]object, maxFiles+1) })
	f("role \"spare\" is unknown", func(m object) { file(m, 0)["role"] = "spare" })
	f("there twice", func(m object) { file(m, 1)["role"] = "detector" })
	code("there twice", func(m object) { file(m, 1)["name"] = "FR_detect.onnx" })
	f("the manifest's own", func(m object) { file(m, 0)["name"] = "Manifest.json" })
	for _, name := range []string{"", "..", ".hidden", "a/b", `a\b`, "../x", "a\x00b", "ä.onnx", strings.Repeat("a", 200)} {
		f("name is not of", func(m object) { file(m, 0)["name"] = name })
	}
	f("size 0", func(m object) { file(m, 0)["size"] = 0 })
	f("size -5", func(m object) { file(m, 0)["size"] = -5 })
	code("bytes together", func(m object) {
		for i := range 3 {
			file(m, i)["size"] = maxFileBytes
		}
	})
	f("sha256", func(m object) { file(m, 0)["sha256"] = strings.Repeat("A", 64) })
	f("sha256", func(m object) { file(m, 0)["sha256"] = "abc" })
	f("licence", func(m object) { file(m, 0)["licence"] = "" })
	f("source", func(m object) { file(m, 0)["source"] = "" })

	f("detector: kind", func(m object) { sub(m, "detector")["kind"] = "yolo" })
	code("multiples of 32", func(m object) { sub(m, "detector")["kind"] = KindYuNet })
	f("minScore 1.5", func(m object) { sub(m, "detector")["minScore"] = 1.5 })
	f("maxOverlap -1", func(m object) { sub(m, "detector")["maxOverlap"] = -1 })
	f("channels", func(m object) { sub(sub(m, "detector"), "input")["channels"] = "RGBA" })
	f("input of 0", func(m object) { sub(sub(m, "detector"), "input")["width"] = 0 })
	f("input of 4096", func(m object) { sub(sub(m, "detector"), "input")["width"] = 4096 })
	f("mean and scale", func(m object) { sub(sub(m, "detector"), "input")["mean"] = []any{1} })
	f("scale 0", func(m object) { sub(sub(m, "detector"), "input")["scale"] = []any{1, 0, 1} })
	f("landmarks: kind", func(m object) { sub(m, "landmarks")["kind"] = "points5" })
	f("cropScale", func(m object) { sub(m, "landmarks")["cropScale"] = 9 })

	f("dim 8", func(m object) { sub(m, "embedder")["dim"] = 8 })
	code("outside the input", func(m object) { sub(m, "embedder")["points"].([]any)[2] = []any{56, 200} })
	f("there twice", func(m object) { sub(m, "embedder")["points"].([]any)[2] = []any{38.2946, 51.6963} })
	f("embedder", func(m object) { sub(m, "embedder")["points"] = []any{[]any{1, 2}} })
	f("basis", func(m object) { delete(sub(m, "embedder"), "basis") })
	f("spectrum has 0 numbers", func(m object) { sub(m, "embedder")["spectrum"] = []any{} })
	f("spectrum number 3", func(m object) { sub(m, "embedder")["spectrum"] = shares(192, 3, -.1) })
	f("spectrum number 3", func(m object) { sub(m, "embedder")["spectrum"] = shares(192, 3, 1.01) })
	code("spectrum has 191 numbers", func(m object) { sub(m, "embedder")["spectrum"] = shares(191, 0, 0) })
	code("spectrum's sum", func(m object) { sub(m, "embedder")["spectrum"] = shares(192, 0, .02) })
	code("do not fit", func(m object) { sub(sub(m, "embedder"), "basis")["rows"] = 191 })
	code("not 4 × 192 × 256", func(m object) { sub(sub(m, "embedder"), "basis")["cols"] = 256 })
	f("pose", func(m object) { m["pose"] = object{"input": sub(m, "detector")["input"], "cropScale": 1} })

	f("no weights", func(m object) { sub(m, "quality")["weights"] = object{} })
	f("feature \"beauty\"", func(m object) { sub(m, "quality")["weights"] = object{"beauty": 1} })
	f("weight norm", func(m object) { sub(m, "quality")["weights"] = object{"norm": 1e9} })
	f("quality: data", func(m object) { delete(sub(m, "quality"), "data") })

	f("fmr7000", func(m object) { sub(m, "calibration")["fmr7000"] = 0 })
	f("points, not from", func(m object) { sub(m, "calibration")["points"] = []any{} })
	f("−1 to 1", func(m object) { point(m, 0)["cosine"] = -.9 })
	code("point 3", func(m object) { point(m, 3)["cosine"] = .1 })
	code("point 3", func(m object) { point(m, 3)["score"] = 3999 })
	f("score 10000", func(m object) { point(m, 8)["score"] = 10000 })
	f("no point has score 7000", func(m object) { point(m, 5)["score"] = 6999 })
	code("not 9999", func(m object) { point(m, 7)["score"] = 9000 })
	code("no point gives cosine 0.999", func(m object) { point(m, 7)["cosine"], point(m, 7)["score"] = .998, 9000 })

	subjects := func(change func(two, four object)) func(m object) {
		return func(m object) {
			c := sub(m, "calibration")
			two := object{"photos": 2, "fmr7000": .1, "points": c["points"]}
			four := object{"photos": 4, "fmr7000": .1, "points": c["points"]}
			c["subjects"] = []any{two, four}
			change(two, four)
		}
	}
	if _, err := Parse(changed(t, subjects(func(object, object) {}))); err != nil {
		t.Errorf("points of means are refused: %v", err)
	}
	f("photos 1 do not rise", subjects(func(two, _ object) { two["photos"] = 1 }))
	f("photos 5 do not rise", subjects(func(_, four object) { four["photos"] = 5 }))
	code("photos 2 do not rise", subjects(func(_, four object) { four["photos"] = 2 }))
	f("subjects of 4 photos: fmr7000", subjects(func(_, four object) { four["fmr7000"] = 1 }))
	f("subjects of 2 photos: 0 points", subjects(func(two, _ object) { two["points"] = []any{} }))
}

// shares are equal, but for one.
func shares(n, index int, share float64) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = 1 / float64(n)
	}
	s[index] = share
	return s
}

// compiledSchema is the published schema in a validator that is not ours.
func compiledSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("manifest.schema.json")
	must.Do(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	must.Do(t, err)
	c := jsonschema.NewCompiler()
	must.Do(t, c.AddResource("manifest.schema.json", doc))
	schema, err := c.Compile("manifest.schema.json")
	must.Do(t, err)
	return schema
}

func valid(t testing.TB, schema *jsonschema.Schema, manifest []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(manifest))
	must.Do(t, err)
	return schema.Validate(doc)
}

func TestShippedManifestsAreValid(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for _, name := range Names() {
		manifest := builtin(t, name)
		if m, err := Parse(manifest); err != nil || m.Name != name {
			t.Errorf("%s: %+v, error %v", name, m, err)
		}
		if err := valid(t, schema, manifest); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok := Builtin("other"); ok {
		t.Error("there is a manifest of no pack")
	}
}

func TestParseRefusesMoreThanOneObject(t *testing.T) {
	t.Parallel()
	f := func(data string) {
		t.Helper()
		if _, err := Parse([]byte(data)); !errors.Is(err, ErrManifest) {
			t.Errorf("error is %v, want ErrManifest", err)
		}
	}
	good := string(Default())
	f("")
	f("null")
	f("[]")
	f(good + "{}")
	f(good[:len(good)/2])
	f(strings.Replace(good, `"format": 1,`, `"format": 1, "format": 1,`, 1))
	f(strings.Replace(good, `"format"`, `"FORMAT"`, 1))
	f(strings.Replace(good, "0.00001", "1e-999999999999999999999999", 1))
	f(good + strings.Repeat(" ", maxManifestBytes))
}

// pack writes a small intact pack and returns its folder and file contents.
func pack(t *testing.T) (string, map[Role][]byte) {
	t.Helper()
	dir := t.TempDir()
	content := map[Role][]byte{
		RoleDetector: []byte("d"), RoleLandmarks: []byte("landmarks"), RoleEmbedder: bytes.Repeat([]byte("e"), 100_000),
	}
	data := changed(t, func(m object) {
		files := m["files"].([]any)[:3]
		m["files"] = files
		delete(m["embedder"].(object), "basis")
		for _, f := range files {
			f := f.(object)
			body := content[Role(f["role"].(string))]
			sum := sha256.Sum256(body)
			f["size"], f["sha256"] = len(body), hex.EncodeToString(sum[:])
			write(t, dir, f["name"].(string), body)
		}
	})
	write(t, dir, ManifestName, data)
	return dir, content
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
}

func TestOpenReturnsDescribedPack(t *testing.T) {
	t.Parallel()
	dir, content := pack(t)
	p, err := Open(dir)
	must.Do(t, err)
	manifest, err := os.ReadFile(filepath.Join(dir, ManifestName))
	must.Do(t, err)
	sum := sha256.Sum256(manifest)
	if want := hex.EncodeToString(sum[:]); p.ID != want {
		t.Errorf("ID is %s, want the manifest's SHA-256 %s", p.ID, want)
	}
	for role, want := range content {
		got, err := p.Load(role)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("Load(%s) gives %d bytes, error %v; want %d", role, len(got), err, len(want))
		}
		if got, err = os.ReadFile(p.Path(role)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("file at Path(%s): %d bytes, error %v; want %d", role, len(got), err, len(want))
		}
	}
	if got := p.Path(RolePose); got != "" {
		t.Errorf("Path of a role that is not there is %q, want none", got)
	}
	if _, err := p.Load(RolePose); !errors.Is(err, ErrPack) {
		t.Errorf("Load of a role that is not there: %v, want ErrPack", err)
	}
}

func TestOpenRefusesForeignFolder(t *testing.T) {
	t.Parallel()
	f := func(want error, text string, harm func(dir string)) {
		t.Helper()
		dir, _ := pack(t)
		harm(dir)
		p, err := Open(dir)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), text) || p != nil {
			t.Errorf("pack %v, error %v; want none and an error that wraps %q and says %q", p, err, want, text)
		}
	}
	must := func(err error) {
		t.Helper()
		must.Do(t, err)
	}
	const name = "fr_detect.onnx"
	f(fs.ErrNotExist, "open model pack", func(dir string) { must(os.RemoveAll(dir)) })
	f(fs.ErrNotExist, ManifestName, func(dir string) { must(os.Remove(filepath.Join(dir, ManifestName))) })
	f(ErrManifest, "larger", func(dir string) { write(t, dir, ManifestName, make([]byte, 1<<20)) })
	f(ErrPack, name+" is missing", func(dir string) { must(os.Remove(filepath.Join(dir, name))) })
	f(ErrPack, "has 2 bytes", func(dir string) { write(t, dir, name, []byte("dd")) })
	f(ErrPack, "SHA-256", func(dir string) { write(t, dir, name, []byte("x")) })

	refused := func(text string, harm func(file string)) {
		t.Helper()
		dir, _ := pack(t)
		file := filepath.Join(dir, name)
		must(os.Remove(file))
		harm(file)
		if p, err := Open(dir); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("pack %v, error %v; want an error that says %q", p, err, text)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	must(os.WriteFile(outside, []byte("d"), 0o600))
	refused("escapes", func(file string) { must(os.Symlink(outside, file)) })
	refused("not a regular file", func(file string) { must(os.Mkdir(file, 0o700)) })
	refused("not a regular file", func(file string) { must(syscall.Mkfifo(file, 0o600)) })
}

func TestLoadRefusesChangedFile(t *testing.T) {
	t.Parallel()
	dir, _ := pack(t)
	p, err := Open(dir)
	must.Do(t, err)
	write(t, dir, "fr_detect.onnx", []byte("x"))
	if data, err := p.Load(RoleDetector); !errors.Is(err, ErrPack) {
		t.Errorf("got %q, error %v; want ErrPack", data, err)
	}
}

// Parse accepts only texts that String returns.
func FuzzParse(f *testing.F) {
	f.Add(Default())
	f.Add([]byte(`{"format":1}`))
	f.Add([]byte(`{"format":1,"files":[{"role":"detector","name":"..","size":1e9}]}`))
	f.Add(bytes.Repeat([]byte("["), 10_000))
	schema := compiledSchema(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrManifest) {
				t.Errorf("error %v does not wrap ErrManifest", err)
			}
			return
		}
		last := -1
		for _, p := range m.Calibration.Points {
			if p.Score < last || p.Score > MaxScore {
				t.Errorf("calibration falls or leaves 0 to %d: %+v", MaxScore, m.Calibration.Points)
			}
			last = p.Score
		}
		for _, file := range m.Files {
			if !filepath.IsLocal(file.Name) || filepath.Base(file.Name) != file.Name {
				t.Errorf("file name %q leads elsewhere", file.Name)
			}
		}
		again, err := json.Marshal(m)
		must.Do(t, err)
		if len(again) > maxManifestBytes {
			return // escapes may make it longer
		}
		if err := valid(t, schema, again); err != nil {
			t.Errorf("by the schema it is not valid: %v", err)
		}
		m2, err := Parse(again)
		if err != nil {
			t.Fatalf("written and read again: %v", err)
		}
		if diff := cmp.Diff(m, m2); diff != "" {
			t.Errorf("written and read again it differs:\n%s", diff)
		}
	})
}
