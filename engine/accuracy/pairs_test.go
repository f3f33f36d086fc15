package accuracy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

func TestReadPairsReadsBothKinds(t *testing.T) {
	t.Parallel()
	photo := func(person string, n int) Photo { return Photo{person, n} }
	want := []Pair{
		{photo("Ann_A", 1), photo("Ann_A", 12), 0},
		{photo("Ann_A", 1), photo("Bo-B", 2), 0},
		{photo("Çelik", 3), photo("Çelik", 4), 1},
		{photo("Bo-B", 1), photo("Ann_A", 2), 1},
	}
	got, err := ReadPairs(strings.NewReader("2\t1\nAnn_A\t1\t12\r\nAnn_A 1 Bo-B 2\n\nÇelik\t3\t4\nBo-B\t1\tAnn_A\t2\n"))
	must.Do(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("−want +got\n%s", diff)
	}
	// View 1 has no folds.
	got, err = ReadPairs(strings.NewReader("1\nAnn_A\t1\t12\nAnn_A 1 Bo-B 2\n"))
	if diff := cmp.Diff(want[:2], got); diff != "" || err != nil {
		t.Errorf("%v, −want +got\n%s", err, diff)
	}
}

func TestReadPairsNamesBadLine(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		if _, err := ReadPairs(strings.NewReader(text)); !errors.Is(err, ErrPairs) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error is %v, want one that wraps ErrPairs and says %q", text, err, want)
		}
	}
	f("", "empty")
	f("\n", "line 1")
	f("a b\n", "line 1")
	f("0 5\n", "line 1")
	f("1 -5\n", "line 1")
	f("1001 1\n", "line 1")
	f("1000 501\n", "more than")
	f("99999999999999999999 1\n", "line 1")
	f("1 1\nA 1 2\n", "1 pairs")
	f("1 1\nA 1 2\nA 1 3\n", "line 3: fold 1 has more than 1")
	f("1 1\nA 1 B 2\nA 1 C 3\n", "line 3: fold 1 has more than 1")
	f("1 1\nA 1 2\nA 1 B 1\nA 1 2\n", "line 4: more than")
	f("1 1\nA 1\n", "line 2: 2 fields")
	f("1 1\nA 1 B 2 C\n", "line 2: 5 fields")
	f("1 1\nA 0 2\n", "line 2")
	f("1 1\nA 1 x\n", "line 2")
	f("1 1\nA 1 1\n", "itself")
	f("1 1\nA 1 A 2\n", "the two names are one")
	f("1 1\n../A 1 2\n", "not that of a folder")
	f("1 1\n.. 1 2\n", "not that of a folder")
	f("1 1\na\\b 1 2\n", "not that of a folder")
	f("1 1\n"+strings.Repeat("A", 256)+" 1 2\n", "not that of a folder")
	f("1 1\n"+strings.Repeat("A", pairLineMax)+" 1 2\n", "longer than")
	f(strings.Repeat("1", pairLineMax+1), "longer than")
}

func FuzzReadPairs(f *testing.F) {
	f.Add("2\t1\nA\t1\t12\nA 1 B 2\nC\t3\t4\nB\t1\tA\t2\n")
	f.Add("1\nA 1 2\nA 1 B 1\n")
	f.Add("1 1\n../x 1 2\n")
	f.Add("1000 500\n")
	f.Fuzz(func(t *testing.T, text string) {
		pairs, err := ReadPairs(strings.NewReader(text))
		if err != nil {
			if pairs != nil {
				t.Errorf("pairs beside the error %v", err)
			}
			return
		}
		// What was read can be written and read again.
		var mated [foldsMax][2]int
		folds := 0
		var out strings.Builder
		for _, p := range pairs {
			kind := 1
			if p.Mated() {
				kind = 0
				fmt.Fprintln(&out, p.A.Person, p.A.Number, p.B.Number)
			} else {
				fmt.Fprintln(&out, p.A.Person, p.A.Number, p.B.Person, p.B.Number)
			}
			mated[p.Fold][kind]++
			folds = max(folds, p.Fold+1)
		}
		for i := range folds {
			if mated[i] != mated[0] || mated[i][0] != mated[i][1] {
				t.Fatalf("fold %d has %v pairs, the first %v", i, mated[i], mated[0])
			}
		}
		again, err := ReadPairs(strings.NewReader(fmt.Sprintln(folds, mated[0][0]) + out.String()))
		if diff := cmp.Diff(pairs, again); diff != "" || err != nil {
			t.Errorf("read again: %v\n%s", err, diff)
		}
	})
}

func TestFoldUsesThresholdOfOthers(t *testing.T) {
	t.Parallel()
	// Fold 0 alone would have the best threshold 6, fold 1 and 2 have 4.
	pairs := []Decision{
		{0, true, 7},
		{0, true, 6},
		{0, false, 5},
		{0, false, 5},
		{1, true, 4},
		{1, true, 5},
		{1, false, 3},
		{1, false, 0},
		{2, true, 4},
		{2, true, -1},
		{2, false, 3},
		{2, false, -1}, // two without a face
	}
	got := CrossValidate(pairs)
	near(t, "mean", got.Mean, (.5+.5+.75)/3, 1e-12) // by hand: 4 decides folds 0 and 2, and 6 fold 1
	if got.N != 3 || got.ThresholdMin != 4 {
		t.Errorf("got %+v, want three folds and the least threshold 4", got)
	}
	if CrossValidate(pairs[:4]) != nil {
		t.Error("one fold can't be decided by others")
	}
	even := []Decision{{0, true, 9}, {0, false, 1}, {1, true, 9}, {1, false, 1}}
	// 2 to 9 are equally good.
	if got := CrossValidate(even); got.Mean != 1 || got.StandardError != 0 || got.ThresholdMin != 5 || got.ThresholdMax != 5 {
		t.Errorf("separate scores: %+v, want all right at 5", got)
	}
}
