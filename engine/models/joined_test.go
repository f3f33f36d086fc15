package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

const (
	secondSHA     = "00000000000000000000000000000000000000000000000000000000000000e2"
	projectionSHA = "000000000000000000000000000000000000000000000000000000000000009a"
)

// joined returns the manifest of a pack with two embedders, of 128 and 192 values, after a change.
func joined(t testing.TB, change func(m object)) []byte {
	t.Helper()
	m := make(object)
	must.Do(t, json.Unmarshal(builtin(t, FoundingPack), &m))
	p := Projection{Rows: 160, Cols: 320}
	first := m["embedder"].(object)
	delete(first, "spectrum")
	file := func(role Role, size int64, sum string) object {
		return object{"role": role, "name": string(role), "size": size, "sha256": sum, "licence": "MIT", "source": "a test"}
	}
	m["files"] = append(m["files"].([]any), file(RoleEmbedder2, 4_000_000, secondSHA), file(RoleProjection, p.Size(), projectionSHA))
	m["joined"] = object{
		"embedder":   object{"input": first["input"], "points": first["points"], "dim": 192},
		"weights":    []float64{1, 1},
		"projection": p,
	}
	text, err := json.Marshal(m)
	must.Do(t, err)
	m = make(object) // of JSON's own types
	must.Do(t, json.Unmarshal(text, &m))
	change(m)
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	return text
}

func asIs(object) {}

func TestParseReadsTwoEmbedders(t *testing.T) {
	t.Parallel()
	text := joined(t, asIs)
	m := parsed(t, text)
	if m.Dim() != 160 || m.Embedder.Dim != 128 || m.Joined.Embedder.Dim != 192 {
		t.Errorf("templates have %d values of embedders of %d and %d", m.Dim(), m.Embedder.Dim, m.Joined.Embedder.Dim)
	}
	if err := valid(t, compiledSchema(t), text); err != nil {
		t.Errorf("by the schema it is not valid: %v", err)
	}
	if dim := parsed(t, Default()).Dim(); dim != 192 {
		t.Errorf("templates of one embedder have %d values, want 192", dim)
	}
}

func TestParseNamesInvalidJoinedField(t *testing.T) {
	t.Parallel()
	onManifest, onManifestByCode := refusals(t, joined)
	f := func(want string, change func(j, m object)) {
		t.Helper()
		onManifest(want, func(m object) { change(m["joined"].(object), m) })
	}
	code := func(want string, change func(j, m object)) {
		t.Helper()
		onManifestByCode(want, func(m object) { change(m["joined"].(object), m) })
	}
	without := func(m object, role Role) {
		m["files"] = slices.DeleteFunc(m["files"].([]any), func(f any) bool { return f.(object)["role"] == string(role) })
	}
	file := func(m object, role Role) object {
		i := slices.IndexFunc(m["files"].([]any), func(f any) bool { return f.(object)["role"] == string(role) })
		return m["files"].([]any)[i].(object)
	}
	f("need each other", func(_, m object) { delete(m, "joined") })
	f("need each other", func(_, m object) { without(m, RoleEmbedder2) })
	f("need each other", func(_, m object) { without(m, RoleProjection) })
	f("need each other", func(_, m object) { delete(m, "joined"); without(m, RoleEmbedder2) })
	code("same file", func(_, m object) { file(m, RoleEmbedder2)["sha256"] = file(m, RoleEmbedder)["sha256"] })
	f("joined: embedder: dim 8", func(j, _ object) { j["embedder"].(object)["dim"] = 8 })
	f("second embedder has a basis", func(j, _ object) { j["embedder"].(object)["basis"] = object{"rows": 192, "cols": 512} })
	f("belongs to the section joined", func(j, _ object) { j["embedder"].(object)["spectrum"] = shares(192, 0, 1./192) })
	f("belongs to the section joined", func(_, m object) { m["embedder"].(object)["spectrum"] = shares(128, 0, 1./128) })
	for _, weight := range []float64{-1, 0, 1e-9, 1e9} {
		f("weight", func(j, _ object) { j["weights"] = []float64{1, weight} })
	}
	f("joined", func(j, _ object) { j["weights"] = []float64{1} })
	f("joined", func(j, _ object) { delete(j, "projection") })
	f("rows is not from 16", func(j, _ object) { j["projection"].(object)["rows"] = 15 })
	f("rows is not from 16", func(j, _ object) { j["projection"].(object)["rows"] = 1 << 40 })
	code("rows is not from 16 to 320", func(j, _ object) { j["projection"].(object)["rows"] = 321 })
	code("does not fit", func(j, _ object) { j["projection"].(object)["cols"] = 319 })
	code("projection file has", func(_, m object) { file(m, RoleProjection)["size"] = 1 << 28 })
	code("spectrum has 128 numbers, not 160", func(j, _ object) { j["spectrum"] = shares(128, 0, 1./128) })
}

func TestModelIDCoversBothEmbedders(t *testing.T) {
	t.Parallel()
	own := parsed(t, joined(t, asIs)).ModelID()
	f := func(same bool, change func(j, m object)) {
		t.Helper()
		got := parsed(t, joined(t, func(m object) { change(m["joined"].(object), m) })).ModelID()
		if (got == own) != same {
			t.Errorf("id is %s, before the change %s, want the same: %v", got, own, same)
		}
	}
	sum := func(m object, from, to string) {
		for _, f := range m["files"].([]any) {
			if f := f.(object); f["sha256"] == from {
				f["sha256"] = to
			}
		}
	}
	f(false, func(_, m object) { sum(m, secondSHA, projectionSHA[:63]+"f") })
	f(false, func(_, m object) { sum(m, projectionSHA, projectionSHA[:63]+"f") })
	f(false, func(j, _ object) { j["weights"] = []float64{1, .5} })
	f(false, func(j, _ object) { j["mirrored"] = true })
	f(false, func(j, _ object) { j["embedder"].(object)["points"].([]any)[0] = []float64{38, 51} })
	f(false, func(j, _ object) { j["embedder"].(object)["input"].(object)["channels"] = "BGR" })
	f(true, func(j, _ object) { j["spectrum"] = shares(160, 0, 1./160) })
	f(true, func(_, m object) { m["note"] = "another" })
	first := parsed(t, joined(t, asIs))
	first.Joined = nil
	if first.ModelID() == own {
		t.Error("one embedder has the id of two")
	}
}

// numbers returns a projection's values, none of them zero.
func (p Projection) numbers() []float32 {
	values := make([]float32, p.Rows*p.Cols)
	for i := range values {
		values[i] = float32(i%97-48)/100 + .001
	}
	return values
}

func TestProjectionIsReadAsWritten(t *testing.T) {
	t.Parallel()
	p := Projection{Rows: 16, Cols: 40}
	want := p.numbers()
	file := p.Encode(want)
	if int64(len(file)) != p.Size() || string(file[:8]) != "facetprj" {
		t.Errorf("%d bytes that start with %q, want %d", len(file), file[:8], p.Size())
	}
	got, err := p.Decode(file)
	must.Do(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestHostileProjectionIsRefused(t *testing.T) {
	t.Parallel()
	p := Projection{Rows: 16, Cols: 40}
	f := func(want string, harm func(file []byte) []byte) {
		t.Helper()
		values, err := p.Decode(harm(p.Encode(p.numbers())))
		if !errors.Is(err, ErrProjection) || !strings.Contains(err.Error(), want) || values != nil {
			t.Errorf("%d values, error %v; want none and an error that says %q", len(values), err, want)
		}
	}
	number := func(at int, x float64) func(file []byte) []byte {
		return func(file []byte) []byte {
			values := p.numbers()
			values[at] = float32(x)
			return p.Encode(values)
		}
	}
	f("does not start", func([]byte) []byte { return nil })
	f("does not start", func(file []byte) []byte { return file[:19] })
	f("does not start", func(file []byte) []byte { file[0]++; return file })
	f("version is 2", func(file []byte) []byte { file[8] = 2; return file })
	f("4294967056 rows", func(file []byte) []byte { copy(file[12:], "\x10\xff\xff\xff"); return file })
	f("17 rows", func(file []byte) []byte { file[12] = 17; return file })
	f("41 columns", func(file []byte) []byte { file[16] = 41; return file })
	f("2579 bytes, not 2580", func(file []byte) []byte { return file[:len(file)-1] })
	f("row 1 has the number NaN", number(47, math.NaN()))
	f("row 15 has the number +Inf", number(15*40, math.Inf(1)))
	f("row 15 has the number -Inf", number(16*40-1, math.Inf(-1)))
	f("row 0 has the number 100000", number(3, 1e5))
	f("row 2 is nearly zero", func([]byte) []byte {
		values := p.numbers()
		clear(values[80:120])
		return p.Encode(values)
	})
}

// FuzzProjection checks that whatever is decoded is finite and is written again as it was.
func FuzzProjection(f *testing.F) {
	p := Projection{Rows: 16, Cols: 40}
	f.Add(p.Encode(p.numbers()), 16, 40)
	f.Add([]byte(projectionMagic), 16, 40)
	f.Add(bytes.Repeat([]byte{255}, int(p.Size())), 2048, 4096)
	f.Fuzz(func(t *testing.T, file []byte, rows, cols int) {
		if rows < minDim || rows > maxDim || cols < rows || cols > 2*maxDim {
			return // Parse refuses the manifest
		}
		p := Projection{Rows: rows, Cols: cols}
		values, err := p.Decode(file)
		if err != nil {
			if !errors.Is(err, ErrProjection) {
				t.Errorf("error %v does not wrap ErrProjection", err)
			}
			return
		}
		for _, v := range values {
			if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("a projection has the number %g", x)
			}
		}
		if !bytes.Equal(p.Encode(values), file) {
			t.Error("written again it differs")
		}
	})
}
