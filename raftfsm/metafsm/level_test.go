package metafsm

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/internal/settings"
	"facet/raftfsm/fsmtest"
)

// levelScript founds a cluster, raises its level and restores a backup into it.
func levelScript() []any {
	node := id.Node{UUID: id.UUID{0xd}}
	g := Gallery{ID: galleryA, Tenant: tenantA, Gallery: settings.Gallery{Name: "gallery", Size: 100}, Shards: 1, Generation: 1, WrappedKey: []byte{7}, Created: 9}
	a, t := testApplication(1), Tenant{ID: tenantA, Name: "tenant", Seq: 5}
	var records [][]byte
	for _, c := range []Copied{
		{Tenant: &t},
		{AccessKey: &AccessKey{ID: "KEY", Tenant: tenantA, Role: 1, SealedSecret: []byte{6}, Created: 8}},
		{Gallery: &g},
		{Grants: &GrantsOf{galleryA, []ShardGrant{{Shard: 2, Total: 20, Reclaimed: 1}}}},
		{Application: &a},
	} {
		records = append(records, c.Encode())
	}
	backup := [32]byte{9}
	return []any{
		Found{Cluster{ID: id.Cluster{UUID: id.UUID{1}}, Shards: 16, Replicas: 3, Pack: "pack"}},
		PutNode{Node{ID: node, Member: id.NewMember(node, 1), Name: "one", Joined: 4, Zone: "z", Level: Level + 1}},
		RaiseLevel{Level: Level + 1},
		Load{Backup: backup, Whole: true, Time: 5},
		Load{Backup: backup, Whole: true, Time: 5, Records: records[:1]},
		Load{Backup: backup, Whole: true, Time: 5, Have: 1, Records: records[1:], Done: true},
	}
}

func TestLevelBytesMatchFormat(t *testing.T) {
	t.Parallel()
	m, again := NewKnowing(Level+1), NewKnowing(Level+2)
	stored := keepsBytes(t, m, again, "levels.txt", levelScript())
	if r, ok := m.Restoration(); !ok || !r.Done || r.Loaded != 5 || m.Level() != Level+1 {
		t.Fatalf("restored: %+v; level %d", r, m.Level())
	}
	if again.Level() != Level+1 {
		t.Fatalf("level %d after a restart", again.Level())
	}
	old := New()
	if err := old.Restore(bytes.NewReader(stored)); !errors.Is(err, ErrLevel) {
		t.Fatalf("software that knows level %d restores the next one: %v", Level, err)
	}
}

func TestLevelRisesOnlyIfAllKnow(t *testing.T) {
	t.Parallel()
	m := NewKnowing(9)
	put := func(n byte, level uint32) Status {
		node := id.Node{UUID: id.UUID{n}}
		c := PutNode{Node{ID: node, Member: id.NewMember(node, 1), Level: level}}
		return status(t, m, c)
	}
	raise := func(to uint32) Status { return status(t, m, RaiseLevel{to}) }
	if got := put(4, LevelFirst-1); got != TooOld {
		t.Errorf("a node of before comes: %v", got)
	}
	put(1, LevelFirst+2)
	put(2, LevelFirst)
	if got := raise(LevelFirst + 1); got != TooOld || m.Level() != LevelFirst {
		t.Errorf("one node knows the first level: %v, level %d", got, m.Level())
	}
	m.Apply(1, SetNodeStateOp.Encode(SetNodeState{Node: id.Node{UUID: id.UUID{2}}, State: NodeRemoved}))
	if got := raise(LevelFirst + 2); got != Done || m.Level() != LevelFirst+2 {
		t.Errorf("it was removed: %v, level %d", got, m.Level())
	}
	if got := raise(LevelFirst + 1); got != Done || m.Level() != LevelFirst+2 {
		t.Errorf("a lower level: %v, level %d", got, m.Level())
	}
	if got := put(3, LevelFirst+1); got != TooOld {
		t.Errorf("a node that knows less comes: %v", got)
	}
	if got := put(3, LevelFirst+2); got != Done {
		t.Errorf("a node that knows as much comes: %v", got)
	}
}

// A founded cluster has LevelFirst in its snapshots, and a snapshot of less is refused.
func TestOldSnapshotsAreRefused(t *testing.T) {
	t.Parallel()
	f := func(c *Cluster, level uint32, want error) {
		t.Helper()
		m := New()
		m.state.cluster, m.state.level = c, level
		if err := New().Restore(bytes.NewReader(fsmtest.Snapshot(t, m))); !errors.Is(err, want) {
			t.Errorf("level %d: %v, want %v", level, err, want)
		}
	}
	f(nil, 0, nil)
	f(&Cluster{}, 0, ErrOldLevel)
	f(&Cluster{}, LevelFirst-1, ErrOldLevel)
	f(&Cluster{}, LevelFirst, nil)
	f(&Cluster{}, Level+1, ErrLevel)
	m := New()
	m.Apply(1, FoundOp.Encode(Found{}))
	if got := m.state.level; got != LevelFirst {
		t.Errorf("a new cluster is stored with level %d", got)
	}
}

// TestCommandFieldsMatchLevel compares the fields of all commands and records with
// testdata/fields.txt. A new field ends every older node that reads it.
func TestCommandFieldsMatchLevel(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	fmt.Fprintf(&b, "level %d\n", Level)
	for code, row := range commands {
		if row.Type != nil {
			fmt.Fprintf(&b, "%d %s\n", code, fsmtest.Fields(row.Type))
		}
	}
	for i, r := range []any{stateRecord{}, Node{}, Tenant{}, AccessKey{}, Gallery{}, GrantsOf{}, Application{}, TagSet{}} {
		fmt.Fprintf(&b, "record %d %s\n", int(headState.Code)+i, fsmtest.Fields(reflect.TypeOf(r)))
	}
	if diff := cmp.Diff(fsmtest.Kept(t, "fields.txt", b.String()), b.String()); diff != "" {
		t.Fatalf("commands have other fields than at their level; docs/formats/commands.md says what that takes (-want +got):\n%s", diff)
	}
}
