package raftfsm

import (
	"errors"
	"testing"
	"time"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
)

// sumsAt returns the sums of members at a checkpoint, once they have them.
func sumsAt(t *testing.T, c *cluster, name CheckID, members ...id.Member) []Sum {
	t.Helper()
	var list []Sum
	for _, m := range members {
		for try := 0; ; try++ {
			if s, ok := c.members[m].Sum(name); ok {
				list = append(list, s)
				break
			}
			if try > 1000 {
				t.Fatalf("%s has no sum", m)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return list
}

func TestMembersSumStateAtSameIndex(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		c.propose("one")
		all := names(3)
		name, err := c.leader().Checkpoint(t.Context())
		must.Do(t, err)
		c.propose("behind it")
		sums := sumsAt(t, c, name, all...)
		for _, s := range sums[1:] {
			if s.Digest != sums[0].Digest || s.Index != sums[0].Index {
				t.Errorf("got %+v, want as %+v", s, sums[0])
			}
		}
		odd := c.members[c.others(c.leader())[0]]
		odd.journal.Apply(odd.Applied(), []byte("nobody proposed this"))
		if name, err = c.leader().Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := sumsAt(t, c, name, all...)
		for i, m := range all {
			same := second[i].Digest == sumsAt(t, c, name, c.leader().name)[0].Digest
			if same != (m != odd.name) {
				t.Errorf("%s: its sum is as the leader's: %v", m, same)
			}
		}
		if second[0].Digest == sums[0].Digest {
			t.Error("the sum did not change with the state")
		}
		if _, err := odd.Checkpoint(t.Context()); !isNotLeader(err) {
			t.Errorf("checkpoint on a follower: got %v, want NotLeaderError", err)
		}
	})
}

func isNotLeader(err error) bool {
	_, is := errors.AsType[*NotLeaderError](err)
	return is
}

func TestOverlappingCheckpointIsSkipped(t *testing.T) {
	t.Parallel()
	c := newChecks()
	m := newJournal()
	command := func(b byte) []byte { return codec.Encode(headCheck, checkCommand{CheckID{b}}) }
	c.applied(1, command(1), m)
	c.applied(2, command(2), m)
	k := c.take()
	if k == nil || k.id != (CheckID{1}) || k.index != 1 {
		t.Fatalf("got %+v, want the first", k)
	}
	c.applied(3, command(3), m)
	if c.take() != nil {
		t.Error("another was frozen while one is hashed")
	}
	k.frozen.Release()
	for i := range byte(2 * sumsKept) {
		c.done(Sum{ID: CheckID{i}}, nil)
	}
	if len(c.sums) != sumsKept || c.sums[0].ID != (CheckID{sumsKept}) {
		t.Errorf("%d sums are kept, want the newest %d", len(c.sums), sumsKept)
	}
	c.applied(4, []byte("another command"), m)
	c.applied(5, []byte{headCheck.Code, headCheck.Version, 0xff}, m)
	if c.take() != nil {
		t.Error("something was frozen that no checkpoint asked for")
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(codec.Encode(headCheck, checkCommand{CheckID{1}}))
	f.Add([]byte{headCheck.Code, headCheck.Version})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newChecks()
		c.applied(1, b, newJournal())
		if k := c.take(); k != nil {
			if b[0] != headCheck.Code || k.index != 1 {
				t.Errorf("%x was taken for a checkpoint: %+v", b, k)
			}
			k.frozen.Release()
		}
	})
}
