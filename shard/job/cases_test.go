package job

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/seal"
)

func TestVerdictsCloseCase(t *testing.T) {
	t.Parallel()
	f := func(needed int, want CaseState, verdicts ...bool) {
		t.Helper()
		c := Case{Needed: needed, Expires: 100}
		for i, same := range verdicts {
			if c.State != CaseOpen {
				t.Fatalf("closed after %d verdicts", i)
			}
			before := len(c.Verdicts)
			next := c.Decided(Verdict{Same: same, Time: int64(10 + i)})
			if len(c.Verdicts) != before {
				t.Error("the case before has changed")
			}
			c = next
		}
		if c.State != want || (c.Closed != 0) != (want != CaseOpen) {
			t.Errorf("%d of %v: %+v, want %d", needed, verdicts, c, want)
		}
	}
	f(1, CaseSame, true)
	f(1, CaseDifferent, false)
	f(2, CaseOpen, true)
	f(2, CaseSame, true, true)
	f(2, CaseDifferent, false, false)
	f(2, CaseDisputed, true, false)
	f(2, CaseDisputed, false, true)
}

func TestOpenCaseExpires(t *testing.T) {
	t.Parallel()
	c := Case{Needed: 1, Expires: 100}
	if got := c.At(99); got.State != CaseOpen || got.Closed != 0 {
		t.Errorf("just before: %+v", got)
	}
	if got := c.At(100); got.State != CaseExpired || got.Closed != 100 {
		t.Errorf("then: %+v", got)
	}
	if got := c.Decided(Verdict{Same: true, Time: 50}).At(200); got.State != CaseSame || got.Closed != 50 {
		t.Errorf("a closed one: %+v", got)
	}
}

func TestErasedCaseNamesNobody(t *testing.T) {
	t.Parallel()
	c := Case{
		ID: id.UUID{1}, Subject: id.Subject{UUID: id.UUID{2}}, Application: id.Application{UUID: id.UUID{3}}, Score: 6000, Threshold: 7000,
		Reference: "visit 12", Created: 5, Expires: 100, Needed: 1, Verdicts: []Verdict{{Same: true, Holder: "anna", Time: 9}},
	}
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	must.Do(t, err)
	sealed := SealCase(key, name(1).Gallery, 1, &c)
	if got, err := OpenCase(key, name(1).Gallery, 1, sealed); err != nil || got.Reference != c.Reference || got.Subject != c.Subject || len(got.Verdicts) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := OpenCase(key, name(1).Gallery, 2, sealed); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("in another generation: %v", err)
	}
	gone := c.Erased(12)
	again, err := OpenCase(key, name(1).Gallery, 1, SealCase(key, name(1).Gallery, 1, &gone))
	if err != nil || again.ID != c.ID || again.State != CaseErased || again.Created != 5 || again.Closed != 12 || !again.Subject.IsZero() ||
		again.Reference != "" || again.Verdicts != nil || again.Score != 0 {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestChangesAreReadOnce reads a batch after each of its changes.
func TestChangesAreReadOnce(t *testing.T) {
	t.Parallel()
	k := New()
	var mark Mark
	f := func(what string, all bool, want ...uint32) {
		t.Helper()
		list, next, whole, err := k.Changes(name(1), mark)
		var got []uint32
		for _, r := range list {
			got = append(got, r.Index)
		}
		if err != nil || whole != all || !slices.Equal(got, want) {
			t.Errorf("%s: items %v, all %v, %v; want %v, %v", what, got, whole, err, want, all)
		}
		mark = next
	}
	put := func(n byte, index uint32, old, text byte) {
		t.Helper()
		p := Put{Name: name(n), Kind: Cases, Index: index, New: []byte{text}, Time: 1000}
		if old != 0 {
			p.Old = []byte{old}
		}
		_, err := k.Put(p)
		must.Do(t, err)
	}
	if _, _, _, err := k.Changes(name(1), mark); !errors.Is(err, ErrUnknown) {
		t.Errorf("without a batch: %v", err)
	}
	put(1, 0, 0, 1)
	put(1, 1, 0, 2)
	f("at first", true, 0, 1)
	f("again", false)
	put(2, 0, 0, 9)
	f("after another batch", false)
	put(1, 1, 2, 3)
	put(1, 2, 0, 4)
	f("after two", false, 1, 2)
	again, err := read(write(t, k))
	must.Do(t, err)
	k.state = again.state
	f("after a snapshot", true, 0, 1, 2)
	put(1, 0, 1, 5)
	f("after one more", false, 0)
	_, err = k.Drop(name(1))
	must.Do(t, err)
	put(1, 0, 0, 1)
	f("of the next batch with this name", true, 0)
}

func BenchmarkOpenCases(b *testing.B) {
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	must.Do(b, err)
	c := Case{
		ID: id.UUID{1}, Subject: id.Subject{UUID: id.UUID{2}}, Application: id.Application{UUID: id.UUID{3}}, Score: 6000, Threshold: 7000,
		Reference: "visits/2030-01-31/0815", Created: 1 << 40, Expires: 1 << 41, Needed: 2, Verdicts: []Verdict{{Same: true, Holder: "anna", Time: 1 << 40}},
	}
	sealed := SealCase(key, name(1).Gallery, 1, &c)
	for b.Loop() {
		for range CasesMax {
			if _, err := OpenCase(key, name(1).Gallery, 1, sealed); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// Cases and pairs of different subjects are batches of their own.
func TestPutTellsKindsApart(t *testing.T) {
	t.Parallel()
	k := New()
	f := func(kind Kind, n byte, want error) {
		t.Helper()
		if _, err := k.Put(Put{Name: name(n), Kind: kind, New: []byte{1}, Time: 1000}); !errors.Is(err, want) {
			t.Errorf("kind %d of batch %d: %v, want %v", kind, n, err, want)
		}
	}
	f(Registrations, 1, ErrConflict)
	f(Duplicates, 1, ErrConflict)
	f(Cases, 1, nil)
	f(Different, 1, ErrConflict)
	f(Different, 2, nil)
	if got := k.Batches(Cases); len(got) != 1 || got[0] != name(1) {
		t.Errorf("cases in %v", got)
	}
	again, err := read(write(t, k))
	if err != nil || !bytes.Equal(write(t, again), write(t, k)) {
		t.Errorf("a snapshot changes it, %v", err)
	}
}
