package faces

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/router"
	"facet/router/cluster"
	"facet/router/clustertest"
)

// degrees is an Extractor whose images are angles of templates of two elements. Another text has no
// face. The first free images take a time, the others find the queue full.
type degrees struct {
	took time.Duration
	free int
}

func (d *degrees) Extract(ctx context.Context, image []byte) ([]engine.Face, error) {
	if d.free == 0 {
		return nil, engine.ErrBusy
	}
	d.free--
	select {
	case <-time.After(d.took):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var angle float64
	if _, err := fmt.Sscan(string(image), &angle); err != nil {
		return nil, nil //nolint:nilerr // a picture without a face
	}
	face := side(100)
	sin, cos := math.Sincos(angle * math.Pi / 180)
	face.Template = engine.Template{float32(cos), float32(sin)}
	return []engine.Face{face}, nil
}

func (d *degrees) ExtractLarge(ctx context.Context, image []byte, _ float32) ([]engine.Face, error) {
	return d.Extract(ctx, image)
}

// comparer is a node that extracts angles. Its table makes 5000 of a right angle.
func comparer(t testing.TB, d *degrees, turn func(context.Context) (func(), error)) *FaceRequests {
	t.Helper()
	table, err := score.NewTable([]score.Point{{Cosine: -1, Score: 0}, {Cosine: .998, Score: 9999}, {Cosine: 1, Score: 9999}})
	must.Do(t, err)
	c := cluster.New(cluster.Config{Groups: clustertest.NewFounded(), Peers: clustertest.Silent{}, Log: slog.New(slog.DiscardHandler), Master: newMaster(t, 1)})
	return New(c, d, table, turn)
}

func photosOf(angles ...string) (list []router.CompareFace) {
	for _, a := range angles {
		list = append(list, router.CompareFace{Image: []byte(a)})
	}
	return list
}

// shownOf returns what was done of each photo, and the scores.
func shownOf(c router.Comparison) string {
	var done []string
	for _, f := range c.Faces {
		switch {
		case f.Err != nil && f.Err.Reason != "":
			done = append(done, f.Err.Reason)
		case f.Err != nil:
			done = append(done, fmt.Sprint("kind ", f.Err.Kind))
		case f.Token != "":
			done = append(done, "token")
		default:
			done = append(done, "-")
		}
	}
	return fmt.Sprint(strings.Join(done, " "), " ", c.Scores)
}

func TestComparisonScoresRowByRow(t *testing.T) {
	t.Parallel()
	r := comparer(t, &degrees{free: 100}, nil)
	tenant := id.Tenant{UUID: id.UUID{1}}
	first, err := r.Compare(t.Context(), tenant, photosOf("0", "nobody", "40", "100", "170"))
	must.Do(t, err)
	angles := []float64{0, math.NaN(), 40, 100, 170}
	var want []int16
	for i, a := range angles {
		for _, b := range angles[:i] {
			if math.IsNaN(a) || math.IsNaN(b) {
				want = append(want, router.NoScore)
				continue
			}
			want = append(want, int16(r.Table.Score(float32(math.Cos((a-b)*math.Pi/180)))))
		}
	}
	near := cmp.Comparer(func(a, b int16) bool { return a-b < 3 && b-a < 3 })
	if diff := cmp.Diff(want, first.Scores, near); diff != "" {
		t.Errorf("scores of %v differ (-want +got):\n%s", angles, diff)
	}
	// Tokens give the same scores as their photos, in any order and beside new photos.
	again, err := r.Compare(t.Context(), tenant, []router.CompareFace{{Token: first.Faces[3].Token}, {Image: []byte("170")}, {Token: first.Faces[0].Token}})
	if s := first.Scores; err != nil || !cmp.Equal(again.Scores, []int16{s[9], s[3], s[6]}) {
		t.Fatalf("with tokens: %v, %v; the first scores were %v", again.Scores, err, s)
	}
	if again.Faces[0] != (router.Compared{}) || again.Faces[1].Token == "" {
		t.Errorf("the faces are %+v", again.Faces)
	}
}

func TestComparisonEndsWithItsTime(t *testing.T) {
	t.Parallel()
	f := func(d degrees, want string, faces ...router.CompareFace) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			c, err := comparer(t, &d, nil).Compare(ctx, id.Tenant{}, faces)
			if err != nil {
				c.Scores = nil
			}
			if got := fmt.Sprint(shownOf(c), router.KindOf(err)); got != want {
				t.Errorf("%+v: %s, %v; want %s", d, got, err, want)
			}
		})
	}
	three := photosOf("0", "0", "0")
	f(degrees{took: 6 * time.Second, free: 9}, "token token token [9999 9999 9999]0", three...)
	f(degrees{took: 8 * time.Second, free: 9}, "token token NotDone [9999 -1 -1]0", three...)
	f(degrees{took: 25 * time.Second, free: 9}, fmt.Sprint(" []", router.Busy), three...)
	f(degrees{free: 1}, "token NotDone NotDone [-1 -1 -1]0", three...)
	f(degrees{}, fmt.Sprint(" []", router.Busy), three...)
}

// The comparisons wait for turns. Without a turn, what was extracted is not lost.
func TestComparisonTakesTurns(t *testing.T) {
	t.Parallel()
	open, taken := 0, 0
	var full bool
	r := comparer(t, &degrees{free: 10}, func(context.Context) (func(), error) {
		if full {
			return nil, engine.ErrBusy
		}
		open++
		taken++
		return func() { open-- }, nil
	})
	one, err := r.Compare(t.Context(), id.Tenant{}, photosOf("0"))
	if err != nil || taken != 0 || one.Scores == nil {
		t.Errorf("one photo: %d turns, scores %v, %v", taken, one.Scores, err)
	}
	faces := make([]router.CompareFace, router.CompareMax)
	for i := range faces {
		faces[i].Token = one.Faces[0].Token
	}
	c, err := r.Compare(t.Context(), id.Tenant{}, faces)
	if want := router.CompareMax * (router.CompareMax - 1) / 2 / comparePiece; err != nil || open != 0 || taken < want || taken > want+2 || c.Scores[0] != 9999 {
		t.Errorf("%d turns, %d not ended, %v; want about %d, 0", taken, open, err, want)
	}
	full = true
	c, err = r.Compare(t.Context(), id.Tenant{}, append(photosOf("90"), faces[0]))
	if err != nil || c.Faces[0].Token == "" || c.Scores != nil {
		t.Errorf("a photo without a turn for scores: %+v, %v", c, err)
	}
	if _, err = r.Compare(t.Context(), id.Tenant{}, faces[:2]); router.KindOf(err) != router.Busy {
		t.Errorf("tokens without a turn: %v, want Busy", err)
	}
}

// BenchmarkCompare compares as many faces as a request may have: 499,500 pairs of 192 elements.
func BenchmarkCompare(b *testing.B) {
	r := comparer(b, &degrees{}, nil)
	tokens := r.faceTokens(id.Tenant{})
	faces := make([]router.CompareFace, router.CompareMax)
	for i := range faces {
		t := make(engine.Template, 192)
		t[i%192] = 1
		faces[i].Token = tokens.seal(t)
	}
	b.SetBytes(int64(len(faces) * len(faces[0].Token)))
	for b.Loop() {
		if _, err := r.Compare(b.Context(), id.Tenant{}, faces); err != nil {
			b.Fatal(err)
		}
	}
}
