package id_test

import (
	"errors"
	"strings"
	"testing"

	"facet/internal/id"
)

func TestDifferentModelsAreNotSame(t *testing.T) {
	t.Parallel()
	a, b := id.Model{1}, id.Model{2}
	for _, pair := range [][2]id.Model{{a, a}, {a, {}}, {{}, a}, {}} {
		if err := id.SameModel(pair[0], pair[1]); err != nil {
			t.Errorf("%s and %s: %v", pair[0], pair[1], err)
		}
	}
	err := id.SameModel(a, b)
	var differ *id.ModelError
	if !errors.As(err, &differ) || differ.Probe != a || differ.Reference != b {
		t.Fatalf("got %v, want a ModelError", err)
	}
	for _, m := range []id.Model{a, b} {
		if !strings.Contains(err.Error(), m.String()) {
			t.Errorf("%q does not name %s", err, m)
		}
	}
}
