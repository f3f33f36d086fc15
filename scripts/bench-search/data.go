package main

import (
	"math"
	"math/rand/v2"
)

// set is a gallery to search in and probes to search with, all of unit norm.
type set struct {
	name  string
	dim   int
	rows  []float32
	mated []float32 // probes of persons who are in rows
	other []float32 // probes of persons who are not
}

const (
	samples  = 5 // of a person
	families = 1000
)

// easy is isotropic: samples of one person have cosines of about .6 to .8.
func easy(seed uint64, n, dim, probes int) *set {
	r := rand.New(rand.NewPCG(seed, uint64(dim)))
	spectrum := make([]float64, dim)
	for i := range spectrum {
		spectrum[i] = 1
	}
	return persons("easy", r, spectrum, counts{n, probes}, nil, [2]float64{.6, .8})
}

// hard has a spectrum that falls by a power law, persons in families that look
// alike, and samples of one person with cosines of about .4 to .7.
func hard(seed uint64, n, dim, probes int) *set {
	r := rand.New(rand.NewPCG(seed, uint64(dim)))
	spectrum := make([]float64, dim)
	for i := range spectrum {
		spectrum[i] = math.Pow(float64(i+1), -.5)
	}
	kin := make([][]float64, families)
	for i := range kin {
		kin[i] = gauss(r, spectrum)
	}
	return persons("hard", r, spectrum, counts{n, probes}, kin, [2]float64{.4, .7})
}

type counts struct{ rows, probes int }

func persons(name string, r *rand.Rand, spectrum []float64, n counts, kin [][]float64, cos [2]float64) *set {
	dim := len(spectrum)
	s := &set{name: name, dim: dim, rows: make([]float32, n.rows*dim)}
	centre := func() []float64 {
		c := gauss(r, spectrum)
		if kin != nil {
			c = mix(c, kin[r.IntN(len(kin))], .5)
		}
		return c
	}
	sample := func(to []float32, c []float64) {
		// Two samples with this much of the centre each have the cosine of its square.
		share := cos[0] + (cos[1]-cos[0])*r.Float64()
		for i, x := range mix(gauss(r, spectrum), c, math.Sqrt(share)) {
			to[i] = float32(x)
		}
	}
	var c []float64
	for i := range n.rows {
		if i%samples == 0 {
			c = centre()
		}
		sample(s.rows[i*dim:(i+1)*dim], c)
		if step := max(n.rows/n.probes, samples); i%step == 0 && len(s.mated) < n.probes*dim {
			s.mated = append(s.mated, make([]float32, dim)...)
			sample(s.mated[len(s.mated)-dim:], c)
		}
	}
	s.other = make([]float32, n.probes*dim)
	for i := range n.probes {
		sample(s.other[i*dim:(i+1)*dim], centre())
	}
	return s
}

func gauss(r *rand.Rand, spectrum []float64) []float64 {
	v := make([]float64, len(spectrum))
	for i, s := range spectrum {
		v[i] = s * r.NormFloat64()
	}
	return normalise(v)
}

// mix gives a unit vector with the given cosine to c, if v is orthogonal to it.
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
