package operation_test

import (
	"bytes"
	"errors"
	"testing"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/operation"
)

const (
	minute = 60_000
	hour   = 60 * minute
)

var (
	limits = operation.Limits{Plain: 3, Keyed: 2}
	magic  = codec.Magic([]byte("facettst"))
)

func outcome(n byte, keyed bool) operation.Outcome {
	return operation.Outcome{
		Name: operation.Name{Op: id.Operation{n}, Request: [16]byte{n}, Keyed: keyed}, Kind: n,
		Scope: [16]byte{4}, IDs: [2][16]byte{{n}, {n, 1}},
	}
}

func known(m *operation.Memory, n byte) bool {
	_, ok := m.Recall(id.Operation{n})
	return ok
}

func TestOperationsExpireByKind(t *testing.T) {
	t.Parallel()
	f := func(keyed bool, keep int64) {
		t.Helper()
		m := operation.New(limits)
		m.Advance(1000)
		m.Remember(outcome(1, keyed))
		m.Advance(1000 + keep)
		if got, ok := m.Recall(id.Operation{1}); !ok || got.Time != 1000 || got.IDs != outcome(1, keyed).IDs {
			t.Errorf("after %d ms: got %+v, %v", keep, got, ok)
		}
		m.Advance(1000 + keep + 1)
		if known(m, 1) || m.Len() != 0 {
			t.Errorf("after %d ms: still known", keep+1)
		}
		m.Remember(outcome(1, keyed)) // once more
	}
	f(false, 10*minute)
	f(true, 24*hour)
}

func TestClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	m := operation.New(limits)
	for _, step := range []struct{ time, want int64 }{{-5, 0}, {100, 100}, {50, 100}, {101, 101}} {
		if got := m.Advance(step.time); got != step.want || m.Clock() != step.want {
			t.Errorf("advance to %d: got %d, clock %d, want %d", step.time, got, m.Clock(), step.want)
		}
	}
}

func TestKindsHaveSeparateBounds(t *testing.T) {
	t.Parallel()
	m := operation.New(limits)
	plain, keyed := outcome(0, false).Name, outcome(0, true).Name
	for n := range byte(3) {
		if m.Full(plain) {
			t.Fatalf("full with %d of 3", n)
		}
		m.Remember(outcome(n, false))
	}
	if !m.Full(plain) || m.Full(keyed) {
		t.Errorf("3 of 3 plain: full %v, keyed %v", m.Full(plain), m.Full(keyed))
	}
	m.Remember(outcome(8, true))
	m.Remember(outcome(9, true))
	if !m.Full(keyed) {
		t.Error("2 of 2 keyed: not full")
	}
	m.Advance(11 * minute)
	if m.Full(plain) || !m.Full(keyed) {
		t.Errorf("11 minutes later: plain full %v, keyed full %v", m.Full(plain), m.Full(keyed))
	}
}

func TestRoomComesWhenOldestIsForgotten(t *testing.T) {
	t.Parallel()
	tenant := id.Tenant{UUID: id.UUID{7}}
	f := func(keyed bool, keep int64) {
		t.Helper()
		m := operation.New(operation.Limits{Plain: 4, Keyed: 4})
		name := outcome(9, keyed).Name
		for n := range byte(4) {
			if at := m.RoomAt(name); at > m.Clock() {
				t.Errorf("with %d of 4: room at %d", n, at)
			}
			m.Advance(int64(n+1) * 1000)
			o := outcome(n, keyed)
			if n > 0 { // the oldest belongs to nobody
				o.Owner = tenant
			}
			m.Remember(o)
		}
		if got, want := m.RoomAt(name), 1000+keep+1; got != want {
			t.Errorf("full memory: room at %d, want %d", got, want)
		}
		for most, want := range map[int]int64{0: 4000 + keep + 1, 1: 4000 + keep + 1, 2: 3000 + keep + 1, 3: 2000 + keep + 1, 4: 0} {
			if got := m.OwnerRoomAt(tenant, keyed, most); got != want {
				t.Errorf("3 of %d: room at %d, want %d", most, got, want)
			}
		}
		if got := m.OwnerRoomAt(tenant, !keyed, 1); got != 0 {
			t.Errorf("the other kind: room at %d", got)
		}
		at := m.OwnerRoomAt(tenant, keyed, 3)
		if m.Advance(at - 1); m.Owned(tenant, keyed) != 3 {
			t.Errorf("before the time of room: %d are owned", m.Owned(tenant, keyed))
		}
		if m.Advance(at); m.Owned(tenant, keyed) != 2 {
			t.Errorf("at the time of room: %d are owned", m.Owned(tenant, keyed))
		}
	}
	f(false, 10*minute)
	f(true, 24*hour)
}

func read(b []byte) (*operation.Memory, error) { return readWith(b, limits, nil) }

func TestLoadedMemoryForgetsAlike(t *testing.T) {
	t.Parallel()
	m := operation.New(limits)
	for n := range byte(3) {
		m.Advance(int64(n) * minute)
		m.Remember(outcome(n, n == 1))
	}
	view := m.Freeze()
	m.Remember(outcome(7, false)) // after the view
	var b bytes.Buffer
	w := codec.NewWriter(&b, magic, 1)
	view.Write(w)
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	loaded, err := read(b.Bytes())
	must.Do(t, err)
	if known(loaded, 7) || loaded.Len() != 3 || loaded.Clock() != 2*minute {
		t.Errorf("loaded: %d operations at %d, the later one known: %v", loaded.Len(), loaded.Clock(), known(loaded, 7))
	}
	for _, step := range []struct {
		time  int64
		known [3]bool
	}{
		{10 * minute, [3]bool{true, true, true}},
		{10*minute + 1, [3]bool{false, true, true}},
		{12*minute + 1, [3]bool{false, true, false}},
		{24*hour + minute + 1, [3]bool{false, false, false}},
	} {
		loaded.Advance(step.time)
		if got := [3]bool{known(loaded, 0), known(loaded, 1), known(loaded, 2)}; got != step.known {
			t.Errorf("at %d: known %v, want %v", step.time, got, step.known)
		}
	}
}

func TestContradictoryRecordsAreRefused(t *testing.T) {
	t.Parallel()
	clock, done := codec.Head{Code: 16, Version: 1}, codec.Head{Code: 17, Version: 1}
	type counts struct {
		Clock int64  `cbor:"1,keyasint"`
		Plain uint64 `cbor:"2,keyasint"`
		Keyed uint64 `cbor:"3,keyasint"`
	}
	at := func(n byte, time int64) operation.Outcome {
		o := outcome(n, false)
		o.Time = time
		return o
	}
	f := func(name string, want error, fill func(w *codec.Writer)) {
		t.Helper()
		var b bytes.Buffer
		w := codec.NewWriter(&b, magic, 1)
		fill(w)
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := read(b.Bytes()); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	f("good", nil, func(w *codec.Writer) {
		w.Record(clock, counts{9, 2, 0})
		w.Record(done, at(1, 9))
		w.Record(done, at(2, 9))
	})
	f("nothing", operation.ErrSnapshot, func(*codec.Writer) {})
	f("two clocks", operation.ErrSnapshot, func(w *codec.Writer) { w.Record(clock, counts{}); w.Record(clock, counts{}) })
	f("a negative clock", operation.ErrSnapshot, func(w *codec.Writer) { w.Record(clock, counts{Clock: -1}) })
	f("no clock", operation.ErrSnapshot, func(w *codec.Writer) { w.Record(done, at(1, 0)) })
	f("too few", operation.ErrSnapshot, func(w *codec.Writer) { w.Record(clock, counts{9, 2, 0}); w.Record(done, at(1, 9)) })
	f("twice", operation.ErrSnapshot, func(w *codec.Writer) {
		w.Record(clock, counts{9, 2, 0})
		w.Record(done, at(1, 9))
		w.Record(done, at(1, 9))
	})
	f("out of order", operation.ErrSnapshot, func(w *codec.Writer) {
		w.Record(clock, counts{9, 2, 0})
		w.Record(done, at(1, 9))
		w.Record(done, at(2, 8))
	})
	f("of the future", operation.ErrSnapshot, func(w *codec.Writer) { w.Record(clock, counts{9, 1, 0}); w.Record(done, at(1, 10)) })
	f("malformed", codec.ErrMalformed, func(w *codec.Writer) { w.Record(clock, struct{}{}); w.Record(done, counts{}) })
}

func FuzzLoaderNeverPanics(f *testing.F) {
	add := func(records ...[]byte) {
		var b []byte
		for _, r := range records {
			b = append(append(b, byte(len(r))), r...)
		}
		f.Add(b)
	}
	done := codec.Encode(codec.Head{Code: 17, Version: 1}, outcome(1, true))
	clock := codec.Encode(codec.Head{Code: 16, Version: 1}, map[int]int{1: 0, 2: 0, 3: 1})
	add(clock, done)
	add(done, clock)
	add(clock, clock)
	f.Fuzz(func(t *testing.T, b []byte) {
		l := operation.NewLoader(limits)
		loaded := 0
		for len(b) > 0 {
			n := min(int(b[0]), len(b)-1)
			if record, err := codec.Split(b[1 : 1+n]); err == nil {
				if mine, err := l.Load(record); mine && err == nil {
					loaded++
				}
			}
			b = b[1+n:]
		}
		m, err := l.Memory()
		if err == nil && m.Len() != loaded-1 {
			t.Fatalf("%d operations of %d records", m.Len(), loaded)
		}
	})
}
