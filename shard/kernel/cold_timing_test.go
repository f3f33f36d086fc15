package kernel

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/scan"
)

var (
	coldRows = flag.Int("cold-rows", 100_000, "rows of BenchmarkCold")
	coldReal = flag.String("cold-real", "", "folder of BenchmarkCold with spectrum.json, gallery.f32, mated.f32 and other.f32 of a pack's templates; empty: made ones")
)

const (
	coldDim    = 192
	coldSealed = 877 // bytes of a sealed face
	coldProbes = 64
	// Copies of an original have this cosine with it, as in scripts/bench/search.
	copyCosine = .5477
)

// safe is a Source of sealed templates in memory.
type safe struct {
	aead    cipher.AEAD
	sealed  [][]byte // by owner
	fetched int
}

func newSafe(b *testing.B) *safe {
	b.Helper()
	block, err := aes.NewCipher(make([]byte, 32))
	must.Do(b, err)
	aead, err := cipher.NewGCM(block)
	must.Do(b, err)
	return &safe{aead: aead, sealed: make([][]byte, 1)}
}

func (s *safe) nonce(owner uint32) []byte {
	return binary.LittleEndian.AppendUint32(make([]byte, 8), owner)
}

func (s *safe) put(v []float32) {
	plain := make([]byte, coldSealed)
	for i, x := range v {
		binary.LittleEndian.PutUint32(plain[4*i:], math.Float32bits(x))
	}
	s.sealed = append(s.sealed, s.aead.Seal(nil, s.nonce(uint32(len(s.sealed))), plain, nil))
}

func (s *safe) Fetch(_ context.Context, owners []uint32, to func(i int, template []float32)) error {
	s.fetched += len(owners)
	var plain []byte
	v := make([]float32, coldDim)
	for i, o := range owners {
		var err error
		if plain, err = s.aead.Open(plain[:0], s.nonce(o), s.sealed[o], nil); err != nil {
			return err
		}
		for j := range v {
			v[j] = math.Float32frombits(binary.LittleEndian.Uint32(plain[4*j:]))
		}
		to(i, v)
	}
	return nil
}

// coldSet is a gallery and probes.
type coldSet struct {
	spectrum     []float64
	row          func(i int) []float32
	mated, other [][]float32
}

// easySet has persons with five samples each, of cosines of .6 to .8, as in scripts/bench/search.
func easySet() *coldSet {
	r := rand.New(rand.NewPCG(1, coldDim))
	var centre []float32
	sample := func() []float32 { return near(r, centre, math.Sqrt(.6+.2*r.Float64())) }
	s := &coldSet{}
	for range coldProbes {
		s.other = append(s.other, unit(r, coldDim))
	}
	s.row = func(i int) []float32 {
		if i%5 == 0 {
			centre = unit(r, coldDim)
		}
		if i%500 == 0 && len(s.mated) < coldProbes {
			s.mated = append(s.mated, sample())
		}
		return sample()
	}
	return s
}

// realSet has the templates of a folder and copies that are turned towards mixtures of them.
func realSet(b *testing.B, folder string) *coldSet {
	b.Helper()
	read := func(name string) (rows [][]float32) {
		raw, err := os.ReadFile(filepath.Join(folder, name))
		must.Do(b, err)
		for ; len(raw) >= 4*coldDim; raw = raw[4*coldDim:] {
			v := make([]float32, coldDim)
			for i := range v {
				v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			}
			rows = append(rows, v)
		}
		return rows
	}
	gallery := read("gallery.f32")
	s := &coldSet{mated: read("mated.f32"), other: read("other.f32")}
	s.mated, s.other = s.mated[:min(len(s.mated), coldProbes)], s.other[:min(len(s.other), coldProbes)]
	raw, err := os.ReadFile(filepath.Join(folder, "spectrum.json"))
	must.Do(b, err)
	must.Do(b, json.Unmarshal(raw, &s.spectrum))
	r := rand.New(rand.NewPCG(1, 1))
	s.row = func(i int) []float32 {
		original := gallery[i%len(gallery)]
		if i < len(gallery) {
			return original
		}
		noise := make([]float32, coldDim)
		for range 32 {
			sign := float32(1 - 2*r.IntN(2))
			for j, x := range gallery[r.IntN(len(gallery))] {
				noise[j] += sign * x
			}
		}
		for j, x := range normalise(noise) {
			noise[j] = float32(copyCosine)*original[j] + float32(math.Sqrt(1-copyCosine*copyCosine))*x
		}
		return normalise(noise)
	}
	return s
}

// steepSet has templates with a falling spectrum, in place of real ones.
func steepSet() *coldSet {
	r := rand.New(rand.NewPCG(1, 3))
	template := func() []float32 { return tapered(r, coldDim, .5) }
	s := &coldSet{spectrum: spectrumOf(coldDim, template)}
	for range coldProbes {
		s.other = append(s.other, template())
	}
	s.row = func(i int) []float32 {
		v := template()
		if i%500 == 0 && len(s.mated) < coldProbes {
			s.mated = append(s.mated, near(r, v, .7))
		}
		return v
	}
	return s
}

// BenchmarkCold searches a matrix while all its rows are warm, and while all are cold but those of
// the flat chunks. It prints medians, and compares all hits.
func BenchmarkCold(b *testing.B) {
	sets := map[string]*coldSet{"easy": easySet(), "steep": steepSet()}
	if *coldReal != "" {
		sets = map[string]*coldSet{"real": realSet(b, *coldReal)}
	}
	for name, set := range sets {
		b.Run(fmt.Sprintf("%s/%d", name, *coldRows), func(b *testing.B) {
			for b.Loop() {
				benchmarkCold(b, set)
			}
		})
	}
}

func benchmarkCold(b *testing.B, set *coldSet) {
	b.Helper()
	w := newSuitedTwin(b, coldDim, set.spectrum)
	w.table = packTable(b)
	source := newSafe(b)
	w.m.Attach(source)
	for i := range *coldRows {
		v := set.row(i)
		source.put(v)
		o := &event{Subject: id.Subject{UUID: id.UUID{byte(i), byte(i >> 8), byte(i >> 16)}}, Event: id.Event{UUID: id.UUID{byte(i >> 16), byte(i >> 8), byte(i)}}}
		if _, err := w.m.Add(w.own(o), v); err != nil {
			b.Fatal(err)
		}
	}
	kinds := []struct {
		name   string
		probes [][]float32
		query  scan.Query
	}{
		{"mated ≥ 7000", set.mated, scan.Query{Threshold: 7000, Limit: 10}},
		{"non-mated ≥ 7000", set.other, scan.Query{Threshold: 7000, Limit: 10}},
		{"mated", set.mated, scan.Query{Limit: 10}},
		{"non-mated", set.other, scan.Query{Limit: 10}},
		{"mated, 50", set.mated, scan.Query{Limit: 50}},
		{"non-mated, 50", set.other, scan.Query{Limit: 50}},
		{"mated, subjects", set.mated, scan.Query{Limit: 10, BySubject: true}},
	}
	var warm []coldTimes
	for _, k := range kinds {
		warm = append(warm, w.timeCold(b, source, k.probes, k.query))
	}
	before := w.m.Bytes()
	for w.m.Chill() > 0 {
	}
	b.Logf("%d rows, %d cold, %.0f B a row warm, %.0f cold", w.m.Len(), w.m.Cold(), float64(before)/float64(w.m.Len()), float64(w.m.Bytes())/float64(w.m.Len()))
	for i, k := range kinds {
		cold := w.timeCold(b, source, k.probes, k.query)
		for j := range cold.hits {
			if !slices.Equal(cold.hits[j], warm[i].hits[j]) {
				b.Errorf("%s, probe %d: got %v, want %v", k.name, j, cold.hits[j], warm[i].hits[j])
			}
		}
		b.Logf("%-17s warm %6.2f ms, cold %6.2f, ratio %.2f; fetched: median %4d, most %5d · 32 at once: warm %5.2f, cold %5.2f, ratio %.2f; fetched %6.1f a search",
			k.name, warm[i].alone, cold.alone, cold.alone/warm[i].alone, cold.median, cold.most, warm[i].together, cold.together, cold.together/warm[i].together, cold.shared)
	}
}

// coldTimes are medians in milliseconds, and rows that were fetched.
type coldTimes struct {
	alone, together float64
	median, most    int
	shared          float64
	hits            [][]scan.Hit
}

func (w *twin) timeCold(b *testing.B, source *safe, probes [][]float32, q scan.Query) (c coldTimes) {
	b.Helper()
	var times, batches []float64
	var fetched []int
	var qs []scan.Query
	for round := range 3 {
		for _, q.Probe = range probes {
			source.fetched = 0
			begin := time.Now()
			hits, err := w.m.Search(w.table, q)
			must.Do(b, err)
			times = append(times, float64(time.Since(begin).Microseconds())/1000)
			fetched = append(fetched, source.fetched)
			if round == 0 {
				c.hits, qs = append(c.hits, hits), append(qs, q)
			}
		}
	}
	source.fetched = 0
	n := min(len(qs), batchMax)
	for range 7 {
		begin := time.Now()
		all, err := w.m.SearchAll(w.table, qs[:n])
		must.Do(b, err)
		batches = append(batches, float64(time.Since(begin).Microseconds())/1000/float64(n))
		for i, hits := range all {
			if !slices.Equal(hits, c.hits[i]) {
				b.Errorf("probe %d: got %v together, %v alone", i, hits, c.hits[i])
			}
		}
	}
	slices.Sort(times)
	slices.Sort(batches)
	slices.Sort(fetched)
	c.alone, c.together, c.shared = times[len(times)/2], batches[len(batches)/2], float64(source.fetched)/float64(7*n)
	c.median, c.most = fetched[len(fetched)/2], fetched[len(fetched)-1]
	return c
}

// As a node's default pack has it.
func packTable(b *testing.B) *score.Table {
	b.Helper()
	table, err := score.NewTable([]score.Point{
		{Cosine: -1},
		{Cosine: 0},
		{Cosine: .25, Score: 4000},
		{Cosine: .34, Score: 5000},
		{Cosine: .418, Score: 6000},
		{Cosine: .482, Score: 7000},
		{Cosine: .54, Score: 8000},
		{Cosine: score.Same, Score: score.Max},
		{Cosine: 1, Score: score.Max},
	})
	must.Do(b, err)
	return table
}
