package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/engine/accuracy"
	"facet/internal/must"
)

func TestGroupsAreRead(t *testing.T) {
	t.Parallel()
	persons := []string{"Ann", "Bob", "Cem", "Di, Eve"}
	got, err := parseGroups([]byte("\ufeffperson,age,sex\nCem,old,m\n\"Di, Eve\",young,\nAnn,young,f\n"), persons)
	must.Do(t, err)
	want := []accuracy.Partition{
		{Attribute: "age", Groups: []accuracy.Group{{Name: "old", Persons: []int{2}}, {Name: "young", Persons: []int{3, 0}}}},
		{Attribute: "sex", Groups: []accuracy.Group{{Name: "f", Persons: []int{0}}, {Name: "m", Persons: []int{2}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	many := "person,village\n"
	var names []string
	for i := range accuracy.GroupsMax + 1 {
		names = append(names, "p"+string(rune('a'+i)))
		many += names[i] + "," + names[i] + "\n"
	}
	for text, message := range map[string]string{
		"":                                    "read the header",
		"name,age\n":                          "the header must be person and then one attribute",
		"person\n":                            "the header must be person and then one attribute",
		"person" + strings.Repeat(",a", 17):   "17 attributes, the most is 16",
		"person,age\nZoe,old\n":               `line 2: there is no folder of the person "Zoe"`,
		"person,age\nAnn,old\nAnn,young\n":    `line 3: the person "Ann" is there twice`,
		"person,age\nAnn,old,m\n":             "line 2: wrong number of fields",
		strings.Repeat("x", groupsBytesMax+1): "it has more than 16 MB",
	} {
		if _, err := parseGroups([]byte(text), persons); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%.40q: %v, want %s", text, err, message)
		}
	}
	if _, err := parseGroups([]byte(many), names); err == nil || !strings.Contains(err.Error(), "village has more than 64 groups") {
		t.Errorf("too many groups: %v", err)
	}
}

// checkGroups checks the groups by office of the samples, which are too few for any rate.
func checkGroups(t *testing.T, d *Document, out string) {
	t.Helper()
	if len(d.Groups) != 1 || len(d.Groups[0].Groups) != 2 {
		t.Fatalf("%+v", d.Groups)
	}
	if g := d.Groups[0].Groups[1]; g.Name != "president" || g.Persons != 2 || g.Photos != 7 || g.MatedPairs != 15 || g.NonMatedPairs != 6 {
		t.Errorf("%+v", g)
	}
	for _, part := range []string{"Groups by office, each compared with itself", "president", "not shown", "How far the groups by office differ", "0 and 0 of 2"} {
		if !strings.Contains(out, part) {
			t.Errorf("the output has no %q:\n%s", part, out)
		}
	}
}

func FuzzGroups(f *testing.F) {
	f.Add([]byte("person,age\nAnn,old\n"))
	f.Add([]byte("person,age\n\"Ann\nBob\",\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseGroups(text, []string{"Ann", "Bob"})
		if err != nil {
			return
		}
		for _, p := range list {
			seen := make(map[int]bool)
			for _, g := range p.Groups {
				for _, person := range g.Persons {
					if seen[person] || person > 1 {
						t.Fatalf("%q: person %d in two groups of %+v", text, person, p)
					}
					seen[person] = true
				}
			}
		}
	})
}
