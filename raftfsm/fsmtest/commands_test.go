package fsmtest_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/raftfsm/fsmtest"
)

// No random history would test a command that no model knows.
func TestModelsKnowEveryCommand(t *testing.T) {
	t.Parallel()
	f := func(section string, most int, next func() []byte) {
		t.Helper()
		proposed := map[int]bool{}
		for range 5000 {
			if cmd := next(); len(cmd) > 0 && cmd[0]&codec.Skippable == 0 {
				proposed[int(cmd[0])] = true
			}
		}
		documented := slices.DeleteFunc(fsmtest.Documented(t, section), func(code int) bool { return code >= most })
		if diff := cmp.Diff(documented, slices.Sorted(maps.Keys(proposed))); diff != "" {
			t.Errorf("%s (-documented +proposed):\n%s", section, diff)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	meta := &metaWorld{Rand: r, time: 1_700_000_000_000, model: newMetaModel()}
	f("## Codes of meta", 64, meta.next)
	shard := &shardWorld{Rand: r, time: 1_700_000_000_000, model: newShardModel(), sealed: map[id.Operation][]byte{}}
	f("## Codes of a shard", 32, shard.next) // package shardfsm tests the jobs' codes, from 32 on
}
