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

// elsewhere is a node that holds no group itself.
type elsewhere struct{ members []id.Member }

func (elsewhere) Group(id.Shard) (*raftfsm.Group, bool)    { return nil, false }
func (elsewhere) Meta() *metafsm.Machine                   { return nil }
func (elsewhere) Shard(id.Shard) (*shardfsm.Machine, bool) { return nil, false }
func (e elsewhere) Members(id.Shard) []id.Member           { return e.members }

// deaf is a network on which nobody answers.
type deaf struct{}

func (deaf) Self() id.Member { return "self" }
func (deaf) Call(context.Context, id.Member, string, []byte) ([]byte, error) {
	return nil, errors.New("not called")
}

func FuzzServeRefusesGarbage(f *testing.F) {
	f.Add("shard.search", []byte{0xa2, 0x01, 0x01, 0x02, 0xa0})
	f.Add("meta.propose", []byte{})
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		r := New(Config{Groups: elsewhere{[]id.Member{"a", "b", "c"}}, Peers: deaf{}, Log: slog.New(slog.DiscardHandler)})
		if _, err := r.Serve(t.Context(), name, body); err == nil {
			t.Errorf("%s with %x was carried out on a node that holds no group", name, body)
		}
	})
}
