package lists

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	gocmp "github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/clustertest"
	"facet/shard"
)

// lists contains shards that have a list of entries each. As Peers it answers the
// requests for a page, and counts the entries in its answers.
type lists struct {
	entries map[id.Shard][]shard.Entry
	given   atomic.Int64
}

func (*lists) Self() id.Member { return "self" }

func (l *lists) Call(_ context.Context, _ id.Member, name string, body []byte) ([]byte, error) {
	switch name {
	case shardSpan.Name:
		e, err := calls.Open[listQuery](body)
		own := l.entries[e.Group]
		if err != nil || len(own) == 0 {
			return wireOf(spanAnswer{}, err)
		}
		return wireOf(spanAnswer{Total: len(own), First: own[0].Time, Last: own[len(own)-1].Time}, nil)
	case shardBefore.Name:
		e, err := calls.Open[beforeQuery](body)
		var counts []int
		for _, t := range e.Query.Times {
			n, _ := slices.BinarySearchFunc(l.entries[e.Group], t, func(x shard.Entry, t int64) int { return cmp.Compare(x.Time, t) })
			counts = append(counts, n)
		}
		return wireOf(counts, err)
	case shardEntries.Name:
		e, err := calls.Open[listQuery](body)
		own := l.entries[e.Group]
		own = own[min(e.Query.Start, len(own)):]
		own = own[:min(e.Query.Length, len(own))]
		l.given.Add(int64(len(own)))
		a := listAnswer{Entries: own, Total: len(l.entries[e.Group])}
		for i := range own {
			a.Sequences = append(a.Sequences, uint64(e.Query.Start+i+1))
		}
		return wireOf(a, err)
	default:
		return nil, fmt.Errorf("%s is not for lists", name)
	}
}

// newNode returns a node whose peers have the shards.
func newNode(peers router.Peers) *ListRequests {
	return New(cluster.New(cluster.Config{Groups: clustertest.NewFounded(), Peers: peers, Log: slog.New(slog.DiscardHandler)}), nil)
}

func wireOf(v any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return cbor.Marshal(v)
}

// TestPagesOverShardsAreCutsOfOneList compares pages at many places, in both
// directions, with the whole sorted list. It also checks that a page far behind
// reads only a few times as many entries as it returns.
func TestPagesOverShardsAreCutsOfOneList(t *testing.T) {
	t.Parallel()
	const shards, perShard = 5, 4000
	random := rand.New(rand.NewPCG(3, 4))
	l := &lists{entries: map[id.Shard][]shard.Entry{}}
	type place struct {
		shard id.Shard
		at    int
		shard.Entry
	}
	var all []place
	for s := id.Shard(1); s <= shards; s++ {
		now := int64(1_700_000_000_000)
		for i := range perShard {
			if random.IntN(50) == 0 {
				now += int64(random.IntN(1_000_000)) // a quiet time between bursts
			}
			now += int64(random.IntN(2))
			e := shard.Entry{Subject: clustertest.Subject(i), Event: id.Event{UUID: id.UUID{byte(s), byte(i >> 8), byte(i)}}, Time: now}
			l.entries[s] = append(l.entries[s], e)
			all = append(all, place{s, i, e})
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.shard, b.shard), cmp.Compare(a.at, b.at))
	})
	var want []router.Entry
	for _, e := range all {
		want = append(want, router.Entry{Subject: e.Subject, Event: e.Event, Updated: time.UnixMilli(e.Time).UTC()})
	}
	r := newNode(l)
	g := cluster.Gallery{Gallery: metafsm.Gallery{}, ShardIDs: []id.Shard{1, 2, 3, 4, 5}}
	for _, order := range []router.Order{router.Ascending, router.Descending} {
		if order == router.Descending {
			slices.Reverse(want)
			slices.Reverse(all)
		}
		for _, start := range []int{0, 1, 999, 7000, 12_345, 19_000, 19_999, 20_000, 50_000} {
			l.given.Store(0)
			got, err := r.pageAt(t.Context(), g, router.Page{Start: start, Length: 1000, Order: order})
			must.Do(t, err)
			end := min(start+1000, len(want))
			if diff := gocmp.Diff(fmt.Sprint(want[min(start, end):end]), fmt.Sprint(got.Entries)); diff != "" || got.Total != len(want) {
				t.Fatalf("start %d, order %d: %s", start, order, diff)
			}
			if c, ok := readCursor(id.Cluster{UUID: id.UUID{9}}, g.Gallery, got.Next); ok != (end < len(want)) {
				t.Errorf("start %d, order %d: the cursor is %q", start, order, got.Next)
			} else if last := all[end-1]; ok && *c != (cursor{order, last.shard, shard.Position{Time: last.Time, Sequence: uint64(last.at + 1)}}) {
				t.Errorf("start %d, order %d: the cursor %v does not name the last entry %v", start, order, c, last)
			}
			if most := int64(2 * shards * (1000 + placeSlack)); l.given.Load() > most {
				t.Errorf("start %d: read %d entries for a page of 1000, want at most %d", start, l.given.Load(), most)
			}
		}
	}
}
