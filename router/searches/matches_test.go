package searches

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/metafsm"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/shard"
)

var matchGallery = metafsm.Gallery{ID: id.Gallery{UUID: id.UUID{1}}, Generation: 1, Epoch: 1, IDKey: [32]byte{5}}

// Each shard gives pages of its own; some leave out subjects that went, and may be empty.
func TestMatchesOfShardsMergeIntoOneRun(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		shards, length := make([][]id.Subject, 1+r.IntN(4)), 1+r.IntN(7)
		gone := map[id.Subject]bool{}
		var want []id.Subject
		for i := range r.IntN(60) {
			s := id.Subject{UUID: id.UUID{byte(r.IntN(4)), byte(i + 1)}}
			at := r.IntN(len(shards))
			shards[at] = append(shards[at], s)
			if gone[s] = r.IntN(5) == 0; !gone[s] {
				want = append(want, s)
			}
		}
		slices.SortFunc(want, lookup.CompareSubjects)
		for _, list := range shards {
			slices.SortFunc(list, lookup.CompareSubjects)
		}
		var got []id.Subject
		for after, turn := (id.Subject{}), 0; ; turn++ {
			lists := make([]matchesAnswer, len(shards))
			for i, all := range shards {
				rest := slices.DeleteFunc(slices.Clone(all), func(s id.Subject) bool { return lookup.CompareSubjects(s, after) <= 0 })
				if len(rest) >= length {
					rest = rest[:length]
					lists[i].Next = rest[length-1]
				}
				for _, s := range rest {
					if !gone[s] {
						lists[i].Matches = append(lists[i].Matches, shard.Match{Subject: s, Events: []shard.Hit{{Score: 7}}, Total: 1})
					}
				}
			}
			page, _, next := mergeMatches(lists, length)
			if len(page) > length {
				t.Fatalf("seed %d: a page of %d, want %d at most", seed, len(page), length)
			}
			for _, m := range page {
				got = append(got, m.Subject)
			}
			if next.IsZero() {
				break
			}
			if after = next; turn > 100 {
				t.Fatalf("seed %d: the run does not end", seed)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, pages of %d:\ngot  %v\nwant %v", seed, length, got, want)
		}
	}
}

func TestDamagedMatchCursorsAreRefused(t *testing.T) {
	t.Parallel()
	of, last := id.Cluster{UUID: id.UUID{9}}, id.Subject{UUID: id.UUID{1, 2, 3}}
	text := matchCursor(of, matchGallery, last)
	if got, ok := readMatchCursor(of, matchGallery, text); !ok || got != last {
		t.Fatalf("%s is read as %v, %v", text, got, ok)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	must.Do(t, err)
	head := raw[:matchCursorHead]
	other := matchGallery
	other.ID.UUID[0]++
	bad := map[string]string{
		"cut": text[:len(text)-1], "longer": text + "A", "of a list": base64.RawURLEncoding.EncodeToString(append(slices.Clone(head), cluster.MACOfCursor("cursor", of, matchGallery, head)...)),
		"of another gallery": matchCursor(of, other, last), "of another cluster": matchCursor(id.Cluster{}, matchGallery, last),
	}
	for bit := range 8 * len(raw) {
		b := slices.Clone(raw)
		b[bit/8] ^= 1 << (bit % 8)
		bad[fmt.Sprint("bit ", bit)] = base64.RawURLEncoding.EncodeToString(b)
	}
	for why, text := range bad {
		if got, ok := readMatchCursor(of, matchGallery, text); ok {
			t.Errorf("%s: %s is read as %v", why, text, got)
		}
	}
}

func FuzzReadMatchCursor(f *testing.F) {
	of := id.Cluster{UUID: id.UUID{9}}
	f.Add(matchCursor(of, matchGallery, id.Subject{UUID: id.UUID{1}}))
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, text string) {
		last, ok := readMatchCursor(of, matchGallery, text)
		if ok && text != "" && matchCursor(of, matchGallery, last) != text {
			t.Errorf("%q is read as %v, which has another cursor", text, last)
		}
	})
}
