package router

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
)

// noGroups is a node without any replica.
type noGroups struct{ members []id.Member }

func (noGroups) Group(id.Shard) (*raftfsm.Group, bool)    { return nil, false }
func (noGroups) Out(id.Shard) bool                        { return false }
func (noGroups) Meta() *metafsm.Machine                   { return nil }
func (noGroups) Shard(id.Shard) (*shardfsm.Machine, bool) { return nil, false }
func (e noGroups) Members(id.Shard) []id.Member           { return e.members }

// silentPeers is a network on which no peer answers.
type silentPeers struct{}

func (silentPeers) Self() id.Member { return "self" }
func (silentPeers) Call(context.Context, id.Member, string, []byte) ([]byte, error) {
	return nil, errors.New("not called")
}

func FuzzServeRefusesGarbage(f *testing.F) {
	f.Add("shard.search", []byte{0xa2, 0x01, 0x01, 0x02, 0xa0})
	f.Add("meta.propose", []byte{})
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		r := New(Config{Groups: noGroups{[]id.Member{"a", "b", "c"}}, Peers: silentPeers{}, Log: slog.New(slog.DiscardHandler)})
		if _, err := r.Serve(t.Context(), name, body); err == nil {
			t.Errorf("%s with %x was carried out on a node that holds no group", name, body)
		}
	})
}
