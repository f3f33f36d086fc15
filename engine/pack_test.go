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
	refused := func(name string, p *models.Pack) {
		t.Helper()
		e, err := engine.New(p, engine.Config{Library: enginetest.Library(t), Workers: 1})
		if err == nil {
			e.Close()
			t.Errorf("%s: it runs", name)
		}
	}
	f := func(name string, change func(embedder object)) {
		t.Helper()
		refused(name, enginetest.PackOf(t, models.Default(), nil, func(m object) {
			m["files"] = slices.DeleteFunc(m["files"].([]any), func(f any) bool { return f.(object)["role"] == "basis" })
			e := m["embedder"].(object)
			delete(e, "basis")
			change(e)
		}))
	}
	f("another dimension", func(e object) { e["dim"] = 128 })
	f("another size", func(e object) {
		maps.Copy(e["input"].(object), object{"width": 150, "height": 150})
	})
	f("grey", func(e object) {
		maps.Copy(e["input"].(object), object{"channels": "GREY", "mean": []any{0}, "scale": []any{1}})
	})
	refused("a second embedder of another size", twins(t, whole, nil, func(m object) {
		m["joined"].(object)["embedder"].(object)["input"].(object)["width"] = 111
	}))
}
