package search

import (
	"math"
	"math/rand/v2"
)

// set is a gallery and the probes to search it with. All templates have unit norm.
type set struct {
	name  string
	dim   int
	rows  []float32
	mated []float32 // probes of persons who are in rows, and in every prefix of matedRows
	other []float32 // probes of persons who are not in rows
	least []least   // thresholds to search with
	table tableOf
	file  string // of the rows and perhaps more
	basis string // file of the basis of the rows' coordinates, with cols columns; or empty
	cols  int
	// spectrum is the share of each number in the squared norm, measured on an
	// independent sample. The kernel adapts its code to it.
	spectrum []float64
}

const (
	samples  = 5 // of a person
	families = 1000
	// The persons of mated probes are among the first matedRows rows.
	matedRows = 100_000
)

// counts is the size of a set: the number of rows, and of probes of each kind.
type counts struct{ rows, probes int }

// easy returns an isotropic set: two samples of one person have cosines of about .6 to
// .8.
func easy(r random, n counts, dim int) *set {
	weights := make([]float64, dim)
	for i := range weights {
		weights[i] = 1
	}
	return persons("easy", r, weights, n, nil, [2]float64{.6, .8})
}

// hard returns a set with a spectrum that falls by a power law. Its persons belong to
// families that look alike. Two samples of one person have cosines of about .4 to .7.
func hard(r random, n counts, dim int) *set {
	weights := make([]float64, dim)
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -.5)
	}
	kin := make([][]float64, families)
	for i := range kin {
		kin[i] = gauss(r.rows, weights)
	}
	return persons("hard", r, weights, n, kin, [2]float64{.4, .7})
}

// generators are the functions that make synthetic sets.
var generators = map[string]func(random, counts, int) *set{"easy": easy, "hard": hard}

// sampleRows is the number of templates that a spectrum is measured on.
const sampleRows = 10_000

// spectrumOf returns the spectrum of a synthetic set. It measures it on another sample
// than the searched one, as the spectrum of a pack is.
func spectrumOf(name string, dim int) []float64 {
	other := random{newSource(3, dim), newSource(4, dim)}
	rows := generators[name](other, counts{sampleRows, 1}, dim).rows
	shares := make([]float64, dim)
	for i, x := range rows {
		shares[i%dim] += float64(x) * float64(x) / sampleRows
	}
	return shares
}

// random has separate sources for rows and probes, so that the rows don't depend on the
// number of probes.
type random struct{ rows, probes *rand.Rand }

func newRandom(dim int) random { return random{newSource(1, dim), newSource(2, dim)} }

func newSource(seed uint64, dim int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(dim))) //nolint:gosec // the same templates in each run
}

func persons(name string, r random, weights []float64, n counts, kin [][]float64, cos [2]float64) *set {
	dim := len(weights)
	s := &set{name: name, dim: dim, rows: make([]float32, n.rows*dim), least: cosines, table: linear}
	centre := func(r *rand.Rand) []float64 {
		c := gauss(r, weights)
		if kin != nil {
			c = mix(c, kin[r.IntN(len(kin))], .5)
		}
		return c
	}
	sample := func(r *rand.Rand, to []float32, c []float64) {
		// Two samples that each have the cosine c to their centre have the cosine c² to
		// each other.
		share := cos[0] + (cos[1]-cos[0])*r.Float64()
		for i, x := range mix(gauss(r, weights), c, math.Sqrt(share)) {
			to[i] = float32(x)
		}
	}
	s.mated, s.other = make([]float32, n.probes*dim), make([]float32, n.probes*dim)
	step := max(min(n.rows, matedRows)/n.probes, samples)
	var c []float64
	for i := range n.rows {
		if i%samples == 0 {
			c = centre(r.rows)
		}
		sample(r.rows, s.rows[i*dim:(i+1)*dim], c)
		if at := i / step; i%step == 0 && at < n.probes {
			sample(r.probes, s.mated[at*dim:(at+1)*dim], c)
		}
	}
	for i := range n.probes {
		sample(r.probes, s.other[i*dim:(i+1)*dim], centre(r.probes))
	}
	return s
}

func gauss(r *rand.Rand, weights []float64) []float64 {
	v := make([]float64, len(weights))
	for i, w := range weights {
		v[i] = w * r.NormFloat64()
	}
	return normalise(v)
}

// mix returns a unit vector with the given cosine to c, if v is orthogonal to it.
func mix(v, c []float64, cos float64) []float64 {
	for i := range v {
		v[i] = math.Sqrt(1-cos*cos)*v[i] + cos*c[i]
	}
	return normalise(v)
}

func normalise(v []float64) []float64 {
	var norm float64
	for _, x := range v {
		norm += x * x
	}
	norm = math.Sqrt(norm)
	for i := range v {
		v[i] /= norm
	}
	return v
}
