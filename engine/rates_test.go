package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/score"
)

// faces is a folder with one folder of photographs a person, to measure the match
// rates on: go test ./engine -run MatchRates -v -faces DIR.
var faces = flag.String("faces", "", "folder with a folder of photographs for each person")

const ratePhotosMax = 20_000

// labelled is a template and the person whose it is.
type labelled struct {
	who      string
	template engine.Template
}

// samplePeople are the largest faces of the sample portraits.
func samplePeople(t *testing.T) []labelled {
	t.Helper()
	var all []labelled
	for _, p := range everybody(t) {
		all = append(all, labelled{p.who, p.face.Template})
	}
	for i, f := range extract(t, enginetest.Photo(t, "face-api/sample5.jpg")) {
		all = append(all, labelled{fmt.Sprint("woman ", i), f.Template})
	}
	return all
}

// peopleOf extracts the face nearest to the middle of every photograph of a
// folder's folders: others may stand beside the person it is filed under.
func peopleOf(t *testing.T, dir string) []labelled {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(paths) == 0 || len(paths) > ratePhotosMax {
		t.Fatalf("%d photographs in %s, want 1 to %d: %v", len(paths), dir, ratePhotosMax, err)
	}
	slices.Sort(paths)
	e := enginetest.Shared(t)
	all := make([]labelled, len(paths))
	var next sync.Mutex
	at := 0
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				next.Lock()
				i := at
				at++
				next.Unlock()
				if i >= len(paths) {
					return
				}
				data, err := os.ReadFile(paths[i])
				if err != nil {
					t.Error(err)
					return
				}
				found, err := e.ExtractLarge(context.Background(), data, 0)
				if err != nil {
					t.Error(paths[i], err)
					return
				}
				if f, ok := central(found, data); ok {
					all[i] = labelled{filepath.Base(filepath.Dir(paths[i])), f.Template}
				}
			}
		})
	}
	wg.Wait()
	all = slices.DeleteFunc(all, func(l labelled) bool { return l.template == nil })
	t.Logf("%d of %d photographs have a face", len(all), len(paths))
	return all
}

// central returns the face nearest to the middle of the image, in its own sizes.
func central(found []engine.Face, data []byte) (engine.Face, bool) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || len(found) == 0 {
		return engine.Face{}, false
	}
	far := func(f engine.Face) float64 {
		r := f.Attributes.Face
		dx, dy := r.Left+r.Right-float32(c.Width), r.Top+r.Bottom-float32(c.Height)
		return math.Hypot(float64(dx), float64(dy)) / float64(r.Right-r.Left)
	}
	return slices.MinFunc(found, func(a, b engine.Face) int { return cmp.Compare(far(a), far(b)) }), true
}

// TestMatchRatesAreThoseThatThePackStates compares every photograph with every
// other one: of the sample photos, where no pair may be on the wrong side of
// 7000, or of the folder named by -faces, where the false match rate of 7000 must
// be that of the manifest, give or take a factor of three.
func TestMatchRatesAreThoseThatThePackStates(t *testing.T) {
	t.Parallel()
	e := enginetest.Shared(t)
	stated := e.Pack().Manifest.Calibration.FMR7000
	var people []labelled
	if *faces == "" {
		people = samplePeople(t)
	} else {
		people = peopleOf(t, *faces)
	}
	// Pairs by thousands of their score.
	var mated, others [score.Max/1000 + 1]int
	for i, a := range people {
		for _, b := range people[:i] {
			if s := e.Compare(a.template, b.template) / 1000; a.who == b.who {
				mated[s]++
			} else {
				others[s]++
			}
		}
	}
	nMated, nOthers := total(mated[:]), total(others[:])
	var table strings.Builder
	for s := range mated {
		fmt.Fprintf(&table, "\n%5d: FMR %.2e (%d of %d), FNMR %.4f", 1000*s, rate(total(others[s:]), nOthers),
			total(others[s:]), nOthers, rate(total(mated[:s]), nMated))
	}
	t.Log(table.String())
	wrong := total(others[7:])
	if *faces == "" {
		if wrong > 0 || total(mated[:7]) > 0 {
			t.Errorf("%d false matches and %d false non-matches, want none", wrong, total(mated[:7]))
		}
		return
	}
	if got := rate(wrong, nOthers); got > 3*stated || got < stated/3 {
		t.Errorf("false match rate at 7000 is %.2e, the pack states %.2e", got, stated)
	}
}

func total(counts []int) (sum int) {
	for _, c := range counts {
		sum += c
	}
	return sum
}

func rate(part, whole int) float64 { return float64(part) / float64(max(whole, 1)) }
