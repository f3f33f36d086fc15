package mutant

import (
	"os"
	"strings"
	"testing"
)

// The test compares the list of constants with that of variables.
func TestBothBuildsHaveSameBugs(t *testing.T) {
	list := func(file, word string) string {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(string(raw), "\n"+word+" (\n")
		if !found {
			t.Fatalf("%s has no list", file)
		}
		return after
	}
	if none, planted := list("mutant.go", "const"), list("planted.go", "var"); none != planted {
		t.Errorf("the lists differ:\n%s\n%s", none, planted)
	}
}
