package search

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"unsafe"

	"facet/engine/score"
)

// least is the threshold of a search: a score in the set's table.
type least struct {
	name  string
	score int
}

var (
	// cosines are thresholds of the linear table.
	cosines = []least{{"≥ .6", centi(.6)}, {"≥ .5", centi(.5)}, {"≥ .4", centi(.4)}, {"none", 0}}
	// scores are thresholds of a pack's table.
	scores = []least{{"≥ 7000", 7000}, {"none", 0}}
)

// middle returns the threshold at which a candidate counts as a hit.
func (s *set) middle() least { return s.least[(len(s.least)-1)/2] }

type tableOf func() (*score.Table, error)

// linear returns a table whose scores are cosines times 10,000.
func linear() (*score.Table, error) {
	return score.NewTable([]score.Point{{Cosine: -1}, {Cosine: 0}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
}

func centi(cosine float64) int { return int(math.Ceil(cosine / score.Same * score.Max)) }

// prefix returns the set with only its first n rows.
func (s *set) prefix(n int) *set {
	p := *s
	p.rows = s.rows[:n*s.dim]
	return &p
}

// parts returns the files of a set with these counts, by name.
func (s *set) parts(n counts) map[string]*[]float32 {
	return map[string]*[]float32{
		fmt.Sprintf("%s-%d-%d-rows.f32", s.name, s.dim, n.rows):                   &s.rows,
		fmt.Sprintf("%s-%d-%d-%d-mated.f32", s.name, s.dim, n.rows, n.probes):     &s.mated,
		fmt.Sprintf("%s-%d-%d-%d-non-mated.f32", s.name, s.dim, n.rows, n.probes): &s.other,
	}
}

// readSet returns a synthetic set that write wrote, or nil if there is none.
func readSet(dir, name string, n counts, dim int) *set {
	s := &set{name: name, dim: dim, least: cosines, table: linear}
	for file, to := range s.parts(n) {
		v, err := readFloats(filepath.Join(dir, file))
		if err != nil {
			return nil
		}
		*to = v
	}
	if len(s.rows) != n.rows*dim || len(s.mated) != n.probes*dim || len(s.other) != n.probes*dim {
		return nil
	}
	return s
}

// write writes the set to the folder, for the peers and for later runs.
func (s *set) write(dir string, n counts) error {
	for file, v := range s.parts(n) {
		file = filepath.Join(dir, file)
		if info, err := os.Stat(file); err == nil && info.Size() == int64(len(*v)*4) && s.name != "real" {
			continue
		}
		if err := os.WriteFile(file, bytesOf(*v), 0o600); err != nil {
			return err
		}
	}
	s.file = filepath.Join(dir, fmt.Sprintf("%s-%d-%d-rows.f32", s.name, s.dim, n.rows))
	return nil
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*4)
}
