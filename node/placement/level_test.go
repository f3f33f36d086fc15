package placement

import (
	"context"
	"errors"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/membership"
	"facet/raftfsm/metafsm"
)

// answering answers each member with the level of its cluster, or an error for 0.
type answering map[id.Member]membershipAnswer

func (a answering) Ask(_ context.Context, to id.Member, _ string, _, answer any) error {
	of, ok := a[to]
	if !ok {
		return errors.New("no answer")
	}
	*answer.(*membershipAnswer) = of //nolint:forcetypeassert // the only question
	return nil
}

func TestClusterOfOtherLevelsIsNotJoined(t *testing.T) {
	t.Parallel()
	member := func(n byte) id.Member { return id.NewMember(id.Node{UUID: id.UUID{n}}, 1) }
	f := func(level uint32, want error) {
		t.Helper()
		there := seen{{Meta: membership.Meta{Member: member(1), Cluster: id.Cluster{UUID: id.UUID{9}}}}}
		p := New(Config{Self: member(2), Level: metafsm.Level, Gossip: &there, Peers: answering{member(1): {Level: level}}})
		if err := p.checkLevel(t.Context()); !errors.Is(err, want) {
			t.Errorf("level %d: %v, want %v", level, err, want)
		}
		p.cfg.Replicas = records{meta: founded(t)}
		p.cfg.HasKey = func([]byte) bool { return true }
		if err := p.CheckFounding(t.Context()); !errors.Is(err, want) {
			t.Errorf("level %d, after it was taken in: %v, want %v", level, err, want)
		}
	}
	f(0, metafsm.ErrOldLevel) // facet 0.1.0 reports no level
	f(metafsm.LevelFirst-1, metafsm.ErrOldLevel)
	f(metafsm.LevelFirst, nil)
	f(metafsm.Level, nil)
	f(metafsm.Level+1, metafsm.ErrLevel)
}

func TestOlderFounderIsRefused(t *testing.T) {
	t.Parallel()
	one, two := id.NewMember(id.Node{UUID: id.UUID{1}}, 1), id.NewMember(id.Node{UUID: id.UUID{2}}, 1)
	f := func(level uint32, of id.Cluster, expect int, want error) {
		t.Helper()
		there := seen{{Meta: membership.Meta{Member: one, Level: level, Version: "0.3.1", Cluster: of}}, {Meta: membership.Meta{Member: two}}}
		if err := New(Config{Self: two, Expect: expect, Gossip: &there}).checkFounders(); !errors.Is(err, want) {
			t.Errorf("level %d, of %s, %d founders: %v, want %v", level, of, expect, err, want)
		}
	}
	f(3, id.Cluster{}, 2, metafsm.ErrOldLevel)
	f(0, id.Cluster{}, 2, metafsm.ErrOldLevel)
	f(metafsm.LevelFirst, id.Cluster{}, 2, nil)
	f(3, id.Cluster{}, 0, nil)
	f(3, id.Cluster{UUID: id.UUID{9}}, 2, nil) // checkLevel asks it
}

func founded(t *testing.T) *metafsm.Machine {
	t.Helper()
	m := metafsm.New()
	a, err := metafsm.FoundOp.Answer(m.Apply(1, metafsm.FoundOp.Encode(metafsm.Found{})))
	must.Do(t, err)
	if a.Status != metafsm.Done {
		t.Fatal(a.Status)
	}
	return m
}
