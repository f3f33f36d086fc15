package backup

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/shardfsm"
	"facet/shard/kernel"
	"facet/shard/seal"
)

// A leader that lost the group asks before it finishes its part. By then another leader may
// have written the part.
func TestUnwantedPartReplacesNothing(t *testing.T) {
	t.Parallel()
	master, err := seal.NewMaster(bytes.Repeat([]byte{1}, seal.KeyBytes))
	must.Do(t, err)
	arena := kernel.NewArena(0)
	t.Cleanup(func() { arena.Close() })
	self := id.NewMember(id.Node{UUID: id.Random([16]byte{1})}, 1)
	s := Open(Config{Self: self, Log: slog.New(slog.DiscardHandler)})
	defer s.Close()
	dir := t.TempDir()
	write := func(try string, during func()) error {
		t.Helper()
		state, err := shardfsm.New(&score.Table{}, arena).Freeze()
		must.Do(t, err)
		o := Order{URL: "file://" + dir, Backup: "b", Shard: 1, Key: KeyCheck(master), Try: try, For: self}
		_, err = WriteShard(t.Context(), o, state, master, func() error { during(); return s.confirm(t.Context(), o) })
		return err
	}
	s.want("second", true)
	must.Do(t, write("second", func() {}))
	good, err := os.ReadFile(filepath.Join(dir, "b", PartName(1)))
	must.Do(t, err)
	s.want("first", true)
	if err := write("first", func() { s.want("first", false) }); !errors.Is(err, errUnwanted) {
		t.Errorf("the part that is late: %v, want errUnwanted", err)
	}
	names, err := os.ReadDir(filepath.Join(dir, "b"))
	if err != nil || len(names) != 1 {
		t.Errorf("the folder has %v, %v; want one part", names, err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "b", PartName(1))); err != nil || !bytes.Equal(now, good) {
		t.Errorf("the part was replaced (%v)", err)
	}
}
