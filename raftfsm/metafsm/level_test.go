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
	"facet/raftfsm/fsmtest"
)

// levelScript founds a cluster, raises its level and restores a backup into it.
func levelScript() []any {
	node := id.Node{UUID: id.UUID{0xd}}
	g := Gallery{ID: galleryA, Tenant: tenantA, Name: "gallery", Size: 100, Shards: 1, Generation: 1, WrappedKey: []byte{7}, Created: 9}
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
		PutNode{Node{ID: node, Member: id.NewMember(node, 1), Name: "one", Joined: 4, Zone: "z", Level: 2}},
		RaiseLevel{Level: 2},
		Load{Backup: backup, Whole: true, Time: 5},
		Load{Backup: backup, Whole: true, Time: 5, Records: records[:1]},
		Load{Backup: backup, Whole: true, Time: 5, Have: 1, Records: records[1:], Done: true},
	}
}

func TestLevelBytesMatchFormat(t *testing.T) {
	t.Parallel()
	m, again := NewKnowing(2), NewKnowing(3)
	stored := keepsBytes(t, m, again, "levels.txt", levelScript())
	if r, ok := m.Restoration(); !ok || !r.Done || r.Loaded != 5 || m.Level() != 2 {
		t.Fatalf("restored: %+v; level %d", r, m.Level())
	}
	if again.Level() != 2 {
		t.Fatalf("level %d after a restart", again.Level())
	}
	old := NewKnowing(1)
	if err := old.Restore(bytes.NewReader(stored)); !errors.Is(err, ErrLevel) {
		t.Fatalf("software that knows level 1 restores level 2: %v", err)
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
	put(1, 3)
	put(2, 0)
	if got := raise(2); got != TooOld || m.Level() != 1 {
		t.Errorf("one node knows level 1: %v, level %d", got, m.Level())
	}
	m.Apply(1, SetNodeStateOp.Encode(SetNodeState{Node: id.Node{UUID: id.UUID{2}}, State: NodeRemoved}))
	if got := raise(3); got != Done || m.Level() != 3 {
		t.Errorf("it was removed: %v, level %d", got, m.Level())
	}
	if got := raise(2); got != Done || m.Level() != 3 {
		t.Errorf("a lower level: %v, level %d", got, m.Level())
	}
	if got := put(3, 2); got != TooOld {
		t.Errorf("a node that knows less comes: %v", got)
	}
	if got := put(3, 3); got != Done {
		t.Errorf("a node that knows as much comes: %v", got)
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
