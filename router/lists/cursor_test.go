package lists

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/clustertest"
	"facet/shard"
	"facet/shard/kernel"
)

var cursorGallery = metafsm.Gallery{ID: id.Gallery{UUID: id.UUID{1}}, Generation: 1, Epoch: 1, IDKey: [32]byte{5}}

// books are real shards. As Peers they answer requests for pages.
type books map[id.Shard]*shard.Shard

func (books) Self() id.Member { return "self" }

func (b books) Call(_ context.Context, _ id.Member, name string, body []byte) ([]byte, error) {
	if name != shardEntries.Name {
		return nil, fmt.Errorf("%s is not for books", name)
	}
	e, err := calls.Open[listQuery](body)
	if err != nil {
		return nil, err
	}
	return wireOf(e.Query.read(b[e.Group]))
}

func newBook(t testing.TB, slots int) *shard.Shard {
	t.Helper()
	table, err := score.NewTable([]score.Point{{Cosine: -1, Score: 0}, {Cosine: .998, Score: 9999}, {Cosine: 1, Score: 9999}})
	must.Do(t, err)
	s := shard.New(table, kernel.NewArena(0))
	t.Cleanup(s.Close)
	must.Do(t, s.Grant(shard.Grant{Gallery: cursorGallery.ID, Generation: 1, Total: uint32(slots)}))
	return s
}

// writer changes a gallery at random. Its shards have clocks of their own, which stand
// still most of the time.
type writer struct {
	*rand.Rand
	t      *testing.T
	books  books
	shards []id.Shard
	now    map[id.Shard]int64
	events map[id.Shard][]shard.Event
	n      int
}

// write adds, replaces or removes an event. A full shard reuses the slots of deleted
// entries.
func (w *writer) write() {
	w.t.Helper()
	s := w.shards[w.IntN(len(w.shards))]
	w.now[s] = max(w.now[s]+int64(w.IntN(3)/2), w.now[w.shards[0]]-2)
	list, now := w.events[s], w.now[s]
	if len(list) == 0 || w.IntN(2) == 0 {
		w.n++
		e := shard.Event{
			Gallery: cursorGallery.ID, Generation: 1, Subject: clustertest.Subject(w.n), Event: clustertest.Event(w.n), Time: now, Sealed: []byte{1},
		}
		if w.books[s].Put(e, shard.OldestDeleted) == nil {
			w.events[s] = append(list, e)
		}
		return
	}
	i := w.IntN(len(list))
	e := &list[i]
	if e.Time == now {
		return // two entries of one event would look alike
	}
	if w.IntN(2) == 0 {
		must.Do(w.t, w.books[s].Remove(shard.Removal{Gallery: e.Gallery, Generation: 1, Subject: e.Subject, Event: e.Event, Time: now}))
		w.events[s] = slices.Delete(list, i, i+1)
		return
	}
	active, err := w.books[s].Events(e.Gallery, 1, e.Subject)
	if err == nil {
		_, err = w.books[s].Update(shard.Replacement{
			Gallery: e.Gallery, Generation: 1, Subject: e.Subject, Event: e.Event, Time: now, Sealed: []byte{1}, Revision: active[0].Revision + 1,
		})
	}
	must.Do(w.t, err)
	e.Time = now
}

// all returns the entries of the gallery as texts, each with the number of its like.
func (w *writer) all() map[string]int {
	out := map[string]int{}
	for _, s := range w.shards {
		p := w.books[s].ListEvents(cursorGallery.ID, 0, 10_000, shard.Ascending)
		for i, e := range p.Entries {
			out[textOf(placed{Entry: router.Entry{Subject: e.Subject, Event: e.Event, Deleted: e.Deleted}, shard: s, sequence: p.Sequences[i]})]++
		}
	}
	return out
}

func textOf(p placed) string { return fmt.Sprint(p.Event, p.Deleted, p.shard, p.sequence) }

// A run of cursors shows each entry that stays as it is exactly once, and no entry
// twice, while events are added, updated and removed and the gallery gets more shards.
func TestCursorRunShowsUnchangedEntriesOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		w := &writer{Rand: rand.New(rand.NewPCG(seed, 1)), t: t, books: books{}, now: map[id.Shard]int64{}, events: map[id.Shard][]shard.Event{}}
		grow := func() {
			s := id.Shard(9 - len(w.shards)*2) // later shards have smaller numbers
			w.books[s], w.now[s] = newBook(t, 30), 1_700_000_000_000
			w.shards = append(w.shards, s)
		}
		for range 1 + w.IntN(3) {
			grow()
		}
		for range w.IntN(200) {
			w.write()
		}
		before := w.all()
		r := newNode(w.books)
		p := router.Page{Length: 1 + w.IntN(9), Order: router.Order(w.IntN(2))}
		shown := map[string]int{}
		for pages := 0; ; pages++ {
			list, err := r.page(t.Context(), cluster.Gallery{Gallery: cursorGallery, ShardIDs: w.shards}, p)
			if err != nil || len(list.Entries) > p.Length || pages > 1000 {
				t.Fatalf("seed %d: page %d has %d entries, %v", seed, pages, len(list.Entries), err)
			}
			for _, e := range list.Entries {
				shown[w.place(e)]++
			}
			if p.After, p.Order = list.Next, router.CursorOrder; list.Next == "" {
				break
			}
			for range w.IntN(6) {
				if pages < 200 { // an ascending run follows the writes
					w.write()
				}
			}
			if w.IntN(20) == 0 && len(w.shards) < 4 {
				grow()
			}
		}
		after := w.all()
		for e := range before {
			if after[e] > 0 && shown[e] != 1 {
				t.Errorf("seed %d, pages of %d: %s stayed and was shown %d times", seed, p.Length, e, shown[e])
			}
		}
		for e, n := range shown {
			if n != 1 {
				t.Errorf("seed %d: %s was shown %d times", seed, e, n)
			}
		}
	}
}

// place returns the text of a shown entry as all has it. The entry is there, because
// nothing was written since the page.
func (w *writer) place(e router.Entry) string {
	w.t.Helper()
	for _, s := range w.shards {
		p := w.books[s].ListEvents(cursorGallery.ID, 0, 10_000, shard.Ascending)
		for i, x := range p.Entries {
			if x.Event == e.Event && x.Deleted == e.Deleted && x.Time == e.Updated.UnixMilli() {
				return textOf(placed{Entry: e, shard: s, sequence: p.Sequences[i]})
			}
		}
	}
	w.t.Fatalf("%v was shown and is not there", e)
	return ""
}

// The last page has no cursor, even if it is full. Empty lists have none.
func TestLastPageHasNoCursor(t *testing.T) {
	t.Parallel()
	for n := range 5 {
		b := books{3: newBook(t, 10), 5: newBook(t, 10)}
		for i := range n {
			e := shard.Event{Gallery: cursorGallery.ID, Generation: 1, Subject: clustertest.Subject(i), Event: clustertest.Event(i), Time: 7, Sealed: []byte{1}}
			must.Do(t, b[id.Shard(3+i%2*2)].Put(e, shard.FreeSlots))
		}
		r := newNode(b)
		for _, order := range []router.Order{router.Ascending, router.Descending, router.CursorOrder} {
			pages, p := 0, router.Page{Length: 2, Order: order}
			for {
				list, err := r.page(t.Context(), cluster.Gallery{Gallery: cursorGallery, ShardIDs: []id.Shard{3, 5}}, p)
				if err != nil || list.Total != n {
					t.Fatalf("%d entries: total %d, %v", n, list.Total, err)
				}
				pages++
				if p.After = list.Next; p.After == "" {
					break
				}
			}
			if want := max(1, (n+1)/2); pages != want {
				t.Errorf("%d entries, order %d: %d pages, want %d", n, order, pages, want)
			}
		}
	}
}

func TestDamagedCursorsAreRefused(t *testing.T) {
	t.Parallel()
	of := id.Cluster{UUID: id.UUID{9}}
	want := cursor{router.Descending, 300, shard.Position{Time: 1_700_000_000_000, Sequence: 1 << 40}}
	text := want.text(of, cursorGallery)
	if got, ok := readCursor(of, cursorGallery, text); !ok || *got != want || len(text) != 48 {
		t.Fatalf("%s is read as %v, %v", text, got, ok)
	}
	refused := func(why string, of id.Cluster, g metafsm.Gallery, text string) {
		t.Helper()
		if got, ok := readCursor(of, g, text); ok {
			t.Errorf("%s: %s is read as %v", why, text, got)
		}
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	must.Do(t, err)
	for bit := range 8 * len(raw) {
		b := slices.Clone(raw)
		b[bit/8] ^= 1 << (bit % 8)
		refused(fmt.Sprintf("bit %d", bit), of, cursorGallery, base64.RawURLEncoding.EncodeToString(b))
	}
	for _, bad := range []string{"", text[:47], text + "A", text + "====", "!" + text[1:], text[:24] + "\n" + text[24:47]} {
		refused("form", of, cursorGallery, bad)
	}
	refused("another cluster", id.Cluster{UUID: id.UUID{8}}, cursorGallery, text)
	other := cursorGallery
	other.Generation = 2
	refused("another generation", of, other, text)
	other = cursorGallery
	other.ID.UUID[0]++
	refused("another gallery", of, other, text)
	other = cursorGallery
	other.IDKey[0]++
	refused("made without the gallery's key", of, other, text)
	for at, value := range map[int]byte{0: cursorVersion + 1, 1: byte(router.CursorOrder)} {
		b := slices.Clone(raw[:cursorHead])
		b[at] = value
		refused("a later version", of, cursorGallery, base64.RawURLEncoding.EncodeToString(append(b, cluster.MACOfCursor(purposeCursor, of, cursorGallery, b)...)))
	}
}

// The shards are asked for their share of a page, and for all of it if one holds more.
func TestCursorPageMayLieOnOneShard(t *testing.T) {
	t.Parallel()
	const perShard = 700
	shards := []id.Shard{5, 4, 3, 2, 1}
	b := books{}
	var want []string
	for i, s := range shards {
		b[s] = newBook(t, perShard)
		for n := range perShard {
			n += i * perShard // each shard's entries come after those of the one before
			e := shard.Event{Gallery: cursorGallery.ID, Generation: 1, Subject: clustertest.Subject(n), Event: clustertest.Event(n), Time: int64(n), Sealed: []byte{1}}
			must.Do(t, b[s].Put(e, shard.FreeSlots))
			want = append(want, e.Event.String())
		}
	}
	r := newNode(b)
	for _, order := range []router.Order{router.Ascending, router.Descending} {
		var got []string
		for p := (router.Page{Length: router.ListLengthMax, Order: order}); ; {
			list, err := r.page(t.Context(), cluster.Gallery{Gallery: cursorGallery, ShardIDs: shards}, p)
			must.Do(t, err)
			for _, e := range list.Entries {
				got = append(got, e.Event.String())
			}
			if p.After = list.Next; p.After == "" {
				break
			}
		}
		if order == router.Descending {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("order %d: the run shows %d entries, or others than the %d", order, len(got), len(want))
		}
	}
}
