package auditing_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"facet/cmd/facet/auditing"
	"facet/cmd/facet/auditing/audittest"
	"facet/internal/must"
	"facet/internal/tiles"
)

func TestProofsOfEntriesHold(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 255, 256, 257, 70_000} {
		l, dir, server := filled(t, n)
		for _, index := range []int{0, n / 3, n / 2, n - 1} {
			for _, src := range []auditing.Source{source(t, dir, ""), source(t, server.URL, server.CA)} {
				text, err := auditing.Prove(t.Context(), src, l.Key, int64(index))
				must.Do(t, err)
				p, err := auditing.CheckProof(text, l.Key, nil)
				if err != nil || p.Index != int64(index) || p.Checkpoint.Tree != l.Tree(t) || !bytes.Equal(p.Entry, l.Entries()[index]) {
					t.Errorf("entry %d of %d: %+v, %v", index, n, p, err)
				}
			}
		}
		for _, index := range []int64{-1, int64(n)} {
			if _, err := auditing.Prove(t.Context(), source(t, dir, ""), l.Key, index); err == nil {
				t.Errorf("entry %d of %d is proven", index, n)
			}
		}
	}
}

func TestChangedProofIsRefused(t *testing.T) {
	t.Parallel()
	l, dir, _ := filled(t, 300)
	text, err := auditing.Prove(t.Context(), source(t, dir, ""), l.Key, 77)
	must.Do(t, err)
	for bit := range 8 * len(text) {
		b := bytes.Clone(text)
		b[bit/8] ^= 1 << (bit % 8)
		if p, err := auditing.CheckProof(b, l.Key, nil); !errors.Is(err, auditing.ErrProof) {
			t.Errorf("bit %d of %d: %+v, %v", bit, 8*len(text), p, err)
		}
	}
	other := audittest.New(t, 2)
	if _, err := auditing.CheckProof(text, other.Key, nil); !errors.Is(err, auditing.ErrProof) {
		t.Errorf("another log's key: %v", err)
	}
	if _, err := auditing.CheckProof(text, l.Key, []byte("another entry")); !errors.Is(err, auditing.ErrProof) {
		t.Errorf("another entry: %v", err)
	}
}

// A proof of an entry that is past its retention, or long, takes the entry from elsewhere.
func TestProofTakesEntryFromElsewhere(t *testing.T) {
	t.Parallel()
	l, dir := audittest.New(t, 1), t.TempDir()
	l.Fill(t, 300, "entry")
	long := bytes.Repeat([]byte("long"), tiles.EntryBytesMax/4)
	l.Append(t, long)
	l.Write(t, dir)
	server := audittest.Serve(t, dir)
	server.Gone = func(path string) bool { return path == "tile/entries/000" }
	for index, entry := range map[int64][]byte{4: l.Entries()[4], 300: long} {
		text, err := auditing.Prove(t.Context(), source(t, server.URL, server.CA), l.Key, index)
		must.Do(t, err)
		if _, err := auditing.CheckProof(text, l.Key, nil); !errors.Is(err, auditing.ErrProof) || !strings.Contains(err.Error(), "--entry") {
			t.Errorf("entry %d without it: %v", index, err)
		}
		if p, err := auditing.CheckProof(text, l.Key, entry); err != nil || p.Index != index {
			t.Errorf("entry %d: %+v, %v", index, p, err)
		}
	}
}

func TestProofsOfOlderStatesHold(t *testing.T) {
	t.Parallel()
	l, dir, _ := filled(t, 700)
	src := source(t, dir, "")
	for _, n := range []int{0, 1, 256, 300, 512, 699, 700} {
		older := l.First(t, n)
		text, err := auditing.ProveOlder(t.Context(), src, l.Key, older.Signed(t))
		must.Do(t, err)
		before, now, err := auditing.CheckOlder(text, older.Signed(t), l.Key)
		if err != nil || before.Tree != older.Tree(t) || now.Tree != l.Tree(t) || !auditing.IsOlder(text) {
			t.Errorf("%d: %v, %v, %v", n, before, now, err)
		}
		if n == 0 {
			continue // any log contains the empty one
		}
		other := forked(t, l, n-1, n)
		if _, err := auditing.ProveOlder(t.Context(), src, l.Key, other.Signed(t)); !errors.Is(err, auditing.ErrFork) {
			t.Errorf("%d entries of a fork are proven: %v", n, err)
		}
		if _, _, err := auditing.CheckOlder(text, other.Signed(t), l.Key); !errors.Is(err, auditing.ErrProof) {
			t.Errorf("%d entries of a fork: %v", n, err)
		}
		if n != 300 {
			continue
		}
		for bit := range 8 * len(text) {
			b := bytes.Clone(text)
			b[bit/8] ^= 1 << (bit % 8)
			if _, _, err := auditing.CheckOlder(b, older.Signed(t), l.Key); !errors.Is(err, auditing.ErrProof) {
				t.Errorf("bit %d of %d: %v", bit, 8*len(text), err)
			}
		}
	}
}

func FuzzCheckProof(f *testing.F) {
	l, dir := audittest.New(f, 1), f.TempDir() // no server: its goroutines would count as coverage
	l.Fill(f, 300, "entry")
	l.Write(f, dir)
	text, err := auditing.Prove(f.Context(), source(f, dir, ""), l.Key, 77)
	must.Do(f, err)
	older := l.First(f, 100).Signed(f)
	consistency, err := auditing.ProveOlder(f.Context(), source(f, dir, ""), l.Key, older)
	must.Do(f, err)
	f.Add(text)
	f.Add(consistency)
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := auditing.CheckProof(b, l.Key, nil); err == nil && !bytes.Equal(p.Entry, l.Entries()[p.Index]) {
			t.Errorf("entry %d is %q", p.Index, p.Entry)
		} else if err != nil && !errors.Is(err, auditing.ErrProof) {
			t.Error(err)
		}
		if _, now, err := auditing.CheckOlder(b, older, l.Key); err == nil && now.Tree != l.Tree(t) {
			t.Errorf("a tree that was not signed: %v", now)
		} else if err != nil && !errors.Is(err, auditing.ErrProof) {
			t.Error(err)
		}
	})
}
