package backup_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"facet/internal/must"
	"facet/node/backup"
	"facet/node/nodetest"
	"facet/raftfsm/shardfsm"
	"facet/shard/kernel"
	"facet/shard/seal"
)

// All parts of a backup are sealed with one key.
func TestPartRefusesAnotherKey(t *testing.T) {
	t.Parallel()
	var keys [2]*seal.Master
	for i := range keys {
		m, err := seal.NewMaster(bytes.Repeat([]byte{byte(i + 1)}, seal.KeyBytes))
		must.Do(t, err)
		keys[i] = m
	}
	arena := kernel.NewArena(0)
	t.Cleanup(func() { arena.Close() })
	write := func(dir string, key backup.Digest) error {
		t.Helper()
		state, err := shardfsm.New(nodetest.Table(), arena).Freeze()
		must.Do(t, err)
		_, err = backup.WriteShard(t.Context(), backup.Order{URL: "file://" + dir, Backup: "b", Shard: 1, Key: key}, state, keys[0], func() error { return nil })
		return err
	}
	dir := t.TempDir()
	if err := write(dir, backup.KeyCheck(keys[1])); !errors.Is(err, backup.ErrKeyChanges) {
		t.Errorf("a node with another key: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it has written %v, %v", left, err)
	}
	if err := write(dir, backup.KeyCheck(keys[0])); err != nil {
		t.Errorf("a node with the same key: %v", err)
	}
}
