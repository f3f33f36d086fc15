package lookup

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard/merging"
)

// MergeState says how far a merge is. Ended is also true if the merge has been forgotten.
type MergeState struct {
	Ended   bool            `cbor:"1,keyasint"`
	Refused merging.Refusal `cbor:"2,keyasint,omitempty"`
	// Gallery and Into are set if the subject was merged into Into lately (mergeKept).
	Gallery id.Gallery `cbor:"3,keyasint,omitzero"`
	Into    id.Subject `cbor:"4,keyasint,omitzero"`
}

// Merge returns how far the merge of a source is, by the leader of its shard.
func Merge(ctx context.Context, r *cluster.Cluster, source id.Subject) (MergeState, error) {
	return calls.CallLeader(ctx, r.Calls, shardMergeState, source.Shard(), source)
}

var shardMergeState = cluster.MachineRead("shard.mergeState", func(m *shardfsm.Machine, source id.Subject) (MergeState, error) {
	of, known := m.Merges().Of(source)
	state := MergeState{Ended: !known || of.Ended != 0, Refused: of.Refused}
	if known && of.Ended != 0 && of.Refused == 0 {
		state.Gallery, state.Into = of.Gallery, of.Target
	}
	return state, nil
})
