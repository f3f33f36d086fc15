package replicas

import (
	"context"
	"encoding/binary"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node/loop"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/seal"
)

// office is a gallery on one shard.
type office struct {
	*shard.Shard
	gallery id.Gallery
	key     *seal.Key
	probe   engine.Template
	want    []shard.Hit
}

const officeEvents = 1000

func newOffice(t *testing.T, machine *shardfsm.Machine, n byte) *office {
	t.Helper()
	key, err := seal.NewKey(slices.Repeat([]byte{n}, seal.KeyBytes))
	must.Do(t, err)
	o := &office{Shard: machine.Shard(), gallery: id.Gallery{UUID: id.UUID{n}}, key: key}
	must.Do(t, o.Grant(shard.Grant{Gallery: o.gallery, Generation: 1, Total: officeEvents}))
	r := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range officeEvents {
		template, square := make(engine.Template, 192), 0.
		for j := range template {
			template[j] = float32(r.NormFloat64())
			square += float64(template[j]) * float64(template[j])
		}
		for j := range template {
			template[j] /= float32(math.Sqrt(square))
		}
		var u id.UUID
		binary.BigEndian.PutUint32(u[:], uint32(i+1))
		e := shard.Event{Gallery: o.gallery, Generation: 1, Subject: id.Subject{UUID: u}, Event: id.Event{UUID: u}, Time: int64(i)}
		e.Sealed = shard.SealFace(key, shard.FaceRef{Gallery: o.gallery, Generation: 1, Subject: e.Subject, Event: e.Event}, engine.Face{Template: template})
		must.Do(t, o.Put(e, shard.FreeSlots))
		o.probe = template
	}
	o.want = o.search(t)
	return o
}

func (o *office) search(t *testing.T) []shard.Hit {
	t.Helper()
	hits, err := o.Search(t.Context(), o.gallery, 1, o.key, shard.Query{Probe: o.probe, Limit: 10})
	if err != nil || len(hits) != 10 {
		t.Fatalf("%d hits, %v", len(hits), err)
	}
	return hits
}

// With less memory the rows of the gallery that was searched longest ago go first, and the estimate
// stays below the budget. With more they come back. Searches find the same all the time.
func TestRowsLeaveAndComeBackWithMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, err := score.NewTable([]score.Point{{Cosine: -1}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
		must.Do(t, err)
		arena := kernel.NewArena(0)
		machines := []*shardfsm.Machine{shardfsm.New(table, arena), shardfsm.New(table, arena), shardfsm.New(table, arena)}
		r := &Replicas{shards: map[id.Shard]hosted{}}
		var offices []*office
		for i, m := range machines {
			r.shards[id.Shard(i+1)] = hosted{state: m}
			offices = append(offices, newOffice(t, m, byte(i+1)))
		}
		used := func() (bytes int64) {
			for _, m := range machines {
				bytes += m.Shard().Memory()
			}
			return bytes
		}
		all := used()
		budget, serves := 2*all, true
		room := &Room{Loop: loop.New("room"), replicas: r, used: used, budget: func() int64 { return budget }, serves: func() bool { return serves }, log: slog.New(slog.DiscardHandler)}
		cold := func() (list []int) {
			for _, o := range offices {
				list = append(list, o.ColdRows())
			}
			return list
		}
		step := func() {
			t.Helper()
			must.Do(t, room.step(context.Background()))
			for i, o := range offices {
				time.Sleep(2 * time.Millisecond) // the searches have different times
				if got := o.search(t); !slices.Equal(got, o.want) {
					t.Fatalf("office %d finds %v, want %v, with %v rows on disk", i, got, o.want, cold())
				}
			}
		}
		if step(); slices.Max(cold()) != 0 {
			t.Errorf("%v rows are on disk although there is room", cold())
		}
		last := 0
		for _, share := range []int64{98, 95, 92, 88, 84} {
			budget = all * share / 100
			step()
			now := cold()
			sum := now[0] + now[1] + now[2]
			if used() > budget || sum < last {
				t.Errorf("with %d %% of the memory %d bytes of %d are used, and %v rows on disk", share, used(), budget, now)
			}
			if share == 98 && (now[0] < now[1] || now[2] > 0) {
				t.Errorf("%v rows are on disk: the gallery that was searched longest ago is the first", now)
			}
			last = sum
		}
		if last == 0 {
			t.Error("no rows left the memory")
		}
		budget, serves = 2*all, false
		if step(); slices.Max(cold()) == 0 {
			t.Error("rows come back before all templates are open")
		}
		serves = true
		if step(); slices.Max(cold()) != 0 {
			t.Errorf("%v rows are still on disk with much memory", cold())
		}
	})
}
