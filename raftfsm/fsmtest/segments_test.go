package fsmtest_test

import (
	"io"
	"math/rand/v2"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/shardfsm"
	"facet/shard/segment"
)

// keeping is a shard whose snapshots refer to segments of a store that all replicas
// share.
type keeping struct {
	*shardfsm.Machine
	clean segment.Clean
}

// settling is a frozen state that calls Settle before WriteTo, and Adopt afterwards.
type settling struct {
	raftfsm.Stored
	clean segment.Clean
}

func (k keeping) Freeze() (raftfsm.Frozen, error) {
	f, err := k.Machine.Freeze()
	if err != nil {
		return nil, err
	}
	return settling{f.(raftfsm.Stored), k.clean}, nil
}

func (s settling) WriteTo(w io.Writer) (int64, error) {
	if _, err := s.Settle(s.clean); err != nil {
		return 0, err
	}
	n, err := s.Stored.WriteTo(w)
	s.Adopt()
	return n, err
}

func TestReplicasAgreeWhereverEventsLie(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := &shardWorld{Rand: r, time: 1_700_000_000_000, model: newShardModel(), sealed: map[id.Operation][]byte{}}
		var commands [][]byte
		for range 60 + r.IntN(100) {
			commands = append(commands, w.next())
		}
		store, err := segment.Open(t.TempDir(), segment.Options{Bytes: 4000, Damaged: func(err error) { t.Error(err) }})
		must.Do(t, err)
		made := 0
		machines := fsmtest.Run(t, fsmtest.Case{
			Rand: r, Commands: commands,
			New: func() raftfsm.Machine {
				m := shardfsm.New(table, arena)
				m.Keep(store)
				made++
				return keeping{m, segment.Clean(made % 2)}
			},
			Answer: func(index uint64, answer []byte) { w.check[index-1](t, answer) },
		})
		for i, m := range machines {
			for g := range galleries {
				w.compareGallery(t, i, m.(keeping).Shard(), galleryID(g))
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
