package lookup

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"facet/internal/id"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard"
)

// presentMax is how many subjects a shard is asked for at once.
const presentMax = 4096

// Present returns the subjects that are still in a gallery, on request with their notes.
func Present(ctx context.Context, r *cluster.Cluster, g cluster.Gallery, subjects []id.Subject, notes bool) (map[id.Subject]shard.Active, error) {
	slices.SortFunc(subjects, CompareSubjects)
	there := map[id.Subject]shard.Active{}
	for at, of := range ByShard(slices.Compact(subjects), id.Subject.Shard) {
		for some := range slices.Chunk(of, presentMax) {
			a, err := calls.CallAny(ctx, r.Calls, shardPresent, at, presentQuery{Gallery: g.ID, Generation: g.Generation, Subjects: some, Notes: notes})
			if err != nil {
				return nil, err
			}
			if len(a.Present) != len(some) || len(a.Noted) > 0 && len(a.Noted) != len(some) {
				return nil, ErrCount
			}
			for i, subject := range some {
				if a.Present[i] {
					there[subject] = shard.Active{}
				}
				if len(a.Noted) > 0 && a.Present[i] {
					there[subject] = a.Noted[i]
				}
			}
		}
	}
	return there, nil
}

// presentQuery asks a shard which subjects it has.
type presentQuery struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Subjects   []id.Subject `cbor:"3,keyasint"`
	Notes      bool         `cbor:"4,keyasint,omitempty"`
}

// presentAnswer has an entry for each subject. Noted may be empty.
type presentAnswer struct {
	Present []bool         `cbor:"1,keyasint"`
	Noted   []shard.Active `cbor:"2,keyasint,omitempty"`
}

var shardPresent = cluster.ShardReadAny("shard.present", func(_ context.Context, _ *cluster.Cluster, s *shard.Shard, q presentQuery) (a presentAnswer, err error) {
	if len(q.Subjects) > presentMax {
		return a, router.Errorf(router.InvalidRequest, "", "at most %d subjects at once", presentMax)
	}
	if a.Present, err = s.Present(q.Gallery, q.Generation, q.Subjects); err == nil && q.Notes {
		a.Noted, err = s.NotesOf(q.Gallery, q.Generation, q.Subjects)
	}
	return a, err
})

// CompareSubjects compares the ids of two subjects.
func CompareSubjects(a, b id.Subject) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }

// ErrCount is returned when a home answers for another number of names than it was asked for.
var ErrCount = errors.New("router: a shard answered with another number of claims")

// ByShard groups a list by shard.
func ByShard[T any](list []T, of func(T) id.Shard) map[id.Shard][]T {
	out := map[id.Shard][]T{}
	for _, one := range list {
		out[of(one)] = append(out[of(one)], one)
	}
	return out
}
