package engine_test

import (
	"maps"
	"slices"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
)

func TestNetworkUnlikeManifestIsRefused(t *testing.T) {
	t.Parallel()
	f := func(name string, change func(embedder map[string]any)) {
		t.Helper()
		p := enginetest.PackOf(t, models.Default(), nil, func(m map[string]any) {
			m["files"] = slices.DeleteFunc(m["files"].([]any), func(f any) bool { return f.(map[string]any)["role"] == "basis" })
			e := m["embedder"].(map[string]any)
			delete(e, "basis")
			change(e)
		})
		e, err := engine.New(p, engine.Config{Library: enginetest.Library(t), Workers: 1})
		if err == nil {
			e.Close()
			t.Errorf("%s: it runs", name)
		}
	}
	f("another dimension", func(e map[string]any) { e["dim"] = 128 })
	f("another size", func(e map[string]any) {
		maps.Copy(e["input"].(map[string]any), map[string]any{"width": 150, "height": 150})
	})
	f("grey", func(e map[string]any) {
		maps.Copy(e["input"].(map[string]any), map[string]any{"channels": "GREY", "mean": []any{0}, "scale": []any{1}})
	})
}
