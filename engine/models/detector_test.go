package models

import (
	"errors"
	"strings"
	"testing"
)

func TestYuNetNeedsWholeCells(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	yunet := func(height int) []byte {
		return changed(t, func(m object) {
			d := m["detector"].(object)
			d["kind"] = KindYuNet
			d["input"].(object)["height"] = height
		})
	}
	if m, err := Parse(yunet(256)); err != nil || m.Detector.Kind != KindYuNet {
		t.Errorf("320 × 256: %v", err)
	}
	if err := valid(t, schema, yunet(256)); err != nil {
		t.Errorf("by the schema it is not valid: %v", err)
	}
	if _, err := Parse(yunet(240)); !errors.Is(err, ErrManifest) || !strings.Contains(err.Error(), "320 × 240 are not multiples of 32") {
		t.Errorf("320 × 240: %v", err)
	}
}
