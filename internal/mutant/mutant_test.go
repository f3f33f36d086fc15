package mutant

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

var bug = regexp.MustCompile(`(?m)^\t(\w+) += planted == ("\w+")$`)

// The test compares the list of constants with that of variables.
func TestBothBuildsHaveSameBugs(t *testing.T) {
	list := func(file string) (bugs []string) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range bug.FindAllSubmatch(raw, -1) {
			bugs = append(bugs, string(m[1])+" "+string(m[2]))
		}
		if len(bugs) == 0 {
			t.Fatalf("%s has no list", file)
		}
		return bugs
	}
	if none, planted := list("mutant.go"), list("planted.go"); !slices.Equal(none, planted) {
		t.Errorf("the lists differ:\n%q\n%q", none, planted)
	}
}
