package job

import (
	"bytes"
	"errors"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/seal"
)

var differentShare = Share{Tenant: id.Tenant{UUID: id.UUID{1}}, Jobs: 1, Items: 3}

func put(k *Book, n byte, index uint32, old, sealed string) error {
	bytesOf := func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}
	_, err := k.Put(Put{Name: name(n), Kind: Different, Index: index, Old: bytesOf(old), New: bytesOf(sealed), Time: 1000, Share: differentShare})
	return err
}

func texts(t *testing.T, k *Book, n byte) (list []string) {
	t.Helper()
	page, _, err := k.Page(name(n), 0, DifferentMax)
	if err != nil && !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	for _, r := range page {
		list = append(list, string(r.Sealed))
	}
	return list
}

func TestPutReplacesWhatItKnows(t *testing.T) {
	t.Parallel()
	k := New()
	f := func(what string, n byte, index uint32, old, sealed string, want error, list ...string) {
		t.Helper()
		if err := put(k, n, index, old, sealed); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		got := texts(t, k, 1)
		for i := range max(len(got), len(list)) {
			if len(got) != len(list) || got[i] != list[i] {
				t.Fatalf("%s: %q, want %q", what, got, list)
			}
		}
	}
	f("behind the first place", 1, 1, "", "a", ErrPlace)
	f("a text that is not there", 1, 0, "x", "a", ErrConflict)
	f("the first", 1, 0, "", "a", nil, "a")
	f("the same place", 1, 0, "", "b", ErrConflict, "a")
	f("the second", 1, 1, "", "b", nil, "a", "b")
	f("the first is free", 1, 0, "a", "", nil, "", "b")
	f("free a second time", 1, 0, "a", "", ErrConflict, "", "b")
	f("a place that was free", 1, 0, "", "c", nil, "c", "b")
	f("the third", 1, 2, "", "d", nil, "c", "b", "d")
	f("more than the share", 1, 3, "", "e", ErrItems, "c", "b", "d")
	f("another batch", 2, 0, "", "e", ErrJobs, "c", "b", "d")
	filled(t, k, 3, 1)
	f("a batch of another kind", 3, 0, "", "e", ErrConflict, "c", "b", "d")
	f("too much", 1, 2, "d", string(make([]byte, SealedMax+1)), ErrPlace, "c", "b", "d")
	if owned := k.Owned()[differentShare.Tenant]; owned != (Owned{Jobs: 1, Items: 3}) {
		t.Errorf("the tenant has %+v", owned)
	}
	k.Expire(1 << 60)
	if got := texts(t, k, 1); len(got) != 3 {
		t.Errorf("after a long time: %q", got)
	}
	if work := k.Work(Registrations); len(work) != 1 || k.Left(Registrations) != 1 || k.Left(Duplicates) != 0 {
		t.Error("somebody is to work on it")
	}
	again, err := read(write(t, k))
	must.Do(t, err)
	if !bytes.Equal(write(t, again), write(t, k)) || again.Owned()[differentShare.Tenant] != (Owned{Jobs: 1, Items: 3}) {
		t.Error("a snapshot changes it")
	}
	again.Fence(name(1).Gallery, 2)
	if len(texts(t, again, 1)) != 0 || len(again.Owned()) != 0 {
		t.Errorf("the gallery is gone, and left %+v", again.Owned())
	}
}

func TestDifferentPairsAreBounded(t *testing.T) {
	t.Parallel()
	k := New()
	for i := range uint32(DifferentMax) {
		if _, err := k.Put(Put{Name: name(1), Kind: Different, Index: i, New: []byte{1}}); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := k.Put(Put{Name: name(1), Kind: Different, Index: DifferentMax, New: []byte{1}}); !errors.Is(err, ErrPlace) {
		t.Errorf("one more: %v", err)
	}
}

func TestDifferentPairOpensInItsGallery(t *testing.T) {
	t.Parallel()
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	must.Do(t, err)
	n, a, b := name(1), id.Subject{UUID: id.UUID{1}}, id.Subject{UUID: id.UUID{2}}
	sealed := SealDifferent(key, n.Gallery, 1, a, b)
	if x, y, err := OpenDifferent(key, n.Gallery, 1, sealed); err != nil || x != a || y != b {
		t.Errorf("%v, %v, %v", x, y, err)
	}
	if _, _, err := OpenDifferent(key, n.Gallery, 2, sealed); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("in another generation: %v", err)
	}
	if _, _, err := OpenDifferent(key, name(2).Gallery, 1, sealed); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("in another gallery: %v", err)
	}
}
