package replicas

import (
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node/loop"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/shard/kernel"
	"facet/shard/segment"
)

// settled writes what a machine holds into segments.
func settled(t *testing.T, m *shardfsm.Machine) {
	t.Helper()
	f, err := m.Freeze()
	must.Do(t, err)
	defer f.Release()
	stored := f.(raftfsm.Stored)
	if _, err := stored.Settle(segment.Share); err != nil {
		t.Fatal(err)
	}
	if _, err := stored.WriteTo(io.Discard); err != nil {
		t.Fatal(err)
	}
	stored.Adopt()
}

// A round writes the codes of one segment of the node, if they are due.
func TestRoundKeepsCodesOfOneSegment(t *testing.T) {
	t.Parallel()
	table, err := score.NewTable([]score.Point{{Cosine: -1}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
	must.Do(t, err)
	arena := kernel.NewArena(0)
	r := &Replicas{shards: map[id.Shard]hosted{}}
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		store, err := segment.Open(dir, segment.Options{Bytes: 1 << 20})
		must.Do(t, err)
		m := shardfsm.New(table, arena)
		m.Keep(store)
		newOffice(t, m, byte(i+1))
		settled(t, m)
		r.shards[id.Shard(i+1)] = hosted{state: m}
	}
	due := false
	c := &Codes{
		Loop: loop.New("codes"), replicas: r, least: kernel.BlockRows,
		due: func() bool { return due }, log: slog.New(slog.DiscardHandler),
	}
	files := func() (n int) {
		for _, dir := range dirs {
			names, err := filepath.Glob(filepath.Join(dir, "*.codes.seg"))
			must.Do(t, err)
			n += len(names)
		}
		return n
	}
	step := func(what string, want int) {
		t.Helper()
		if err := c.step(t.Context()); err != nil || files() != want {
			t.Errorf("%s: %d files, want %d, %v", what, files(), want, err)
		}
	}
	step("not due", 0)
	due = true
	step("one", 1)
	step("the other", 2)
	step("all", 2)
}
