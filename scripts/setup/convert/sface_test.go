package convert_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"facet/engine/enginetest"
	"facet/engine/onnx"
	"facet/internal/must"
	"facet/scripts/setup/convert"
)

const sfaceDim = 128

// quantised returns SFace as published. Without prepared weights its graph has an
// input for each of them, which ONNX Runtime wants to be given: onlyInput removes
// them.
func quantised(tb testing.TB) []byte {
	tb.Helper()
	return published(tb, "sface_int8bq.onnx")
}

// published returns a model as set-up fetched it.
func published(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(enginetest.Assets(tb), "cache", name))
	if err != nil {
		tb.Fatalf("%v: run make setup in the repository's root first", err)
	}
	return data
}

// onlyInput returns an ONNX model without the inputs of its graph but the first.
func onlyInput(tb testing.TB, model []byte) []byte {
	tb.Helper()
	const graph, input = 7, 11
	inputs := 0
	return edit(tb, model, func(id protowire.Number, value []byte) []byte {
		if id != graph {
			return value
		}
		return edit(tb, value, func(id protowire.Number, value []byte) []byte {
			if id != input {
				return value
			}
			if inputs++; inputs > 1 {
				return nil
			}
			return value
		})
	})
}

// edit replaces the length-delimited fields of a message by what f returns. Nil removes one.
func edit(tb testing.TB, msg []byte, f func(protowire.Number, []byte) []byte) []byte {
	tb.Helper()
	var out []byte
	for len(msg) > 0 {
		id, kind, n := protowire.ConsumeTag(msg)
		size := protowire.ConsumeFieldValue(id, kind, msg[max(n, 0):])
		if n < 0 || size < 0 {
			tb.Fatalf("field %d: %v", id, protowire.ParseError(min(n, size)))
		}
		field := msg[:n+size]
		msg = msg[n+size:]
		if kind != protowire.BytesType {
			out = append(out, field...)
			continue
		}
		value, _ := protowire.ConsumeBytes(field[n:])
		if value = f(id, value); value != nil {
			out = protowire.AppendBytes(protowire.AppendTag(out, id, kind), value)
		}
	}
	return out
}

// runner opens an embedder.
func runner(tb testing.TB, name string, network []byte, dim int) *onnx.Runner {
	tb.Helper()
	return runnerOf(tb, onnx.Spec{
		Name: name, Network: network,
		Input:   onnx.Tensor{Shape: []int64{1, 3, cropSide, cropSide}},
		Outputs: []onnx.Tensor{{Shape: []int64{1, int64(dim)}}},
	})
}

// variant returns the i-th crop (BGR, (x − 127) / 128) as values of RGB: as it is, mirrored, or of less
// contrast.
func variant(i int, crop []float32) []float32 {
	const area = cropSide * cropSide
	at := func(c, y, x int) float32 { return crop[(2-c)*area+y*cropSide+x]*128 + 127 }
	f := []func(c, y, x int) float32{
		at,
		func(c, y, x int) float32 { return at(c, y, cropSide-1-x) },
		func(c, y, x int) float32 { return 100 + at(c, y, x)/4 },
	}[i%3]
	v := make([]float32, 3*area)
	for i := range v {
		v[i] = f(i/area, i%area/cropSide, i%cropSide)
	}
	return v
}

// The converted SFace returns what the published one returns.
func TestSFaceEqualsPublished(t *testing.T) {
	t.Parallel()
	src := quantised(t)
	made, err := convert.SFace(src)
	must.Do(t, err)
	all := crops(t) // loads ONNX Runtime
	published, converted := runner(t, "published", onlyInput(t, src), sfaceDim), runner(t, "converted", made, sfaceDim)
	worst := 0.
	for n, crop := range all {
		values := variant(n, crop)
		copy(published.Input(), values)
		for i, v := range values {
			converted.Input()[i] = (v - convert.SFaceMean) * convert.SFaceScale
		}
		for _, r := range []*onnx.Runner{published, converted} {
			must.Do(t, r.Run())
		}
		norm := 0.
		for _, v := range published.Output(0) {
			norm += float64(v) * float64(v)
		}
		for i, v := range converted.Output(0) {
			worst = max(worst, math.Abs(float64(v-published.Output(0)[i]))/math.Sqrt(norm))
		}
	}
	t.Logf("%d faces: largest difference of a number of a unit template %.1e", len(all), worst)
	if len(all) < 10 || worst > 1e-5 {
		t.Errorf("%d faces, difference %g; want 10 or more, 1e-5 or less", len(all), worst)
	}
}
