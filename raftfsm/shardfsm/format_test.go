package shardfsm

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

func TestFormatsPageIsComplete(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("format.md")
	must.Do(t, err)
	_, listed, _ := strings.Cut(string(page), "## Commands")
	listed, rest, _ := strings.Cut(listed, "## Statuses")
	statuses, _, _ := strings.Cut(rest, "## State")

	got := make(map[string]string) // code → name and number of fields
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| (\w+) \| (.*) \|$`).FindAllStringSubmatch(listed, -1) {
		if m[3] == "as 2" {
			m[3] = strings.Repeat(",", storedFields(reflect.TypeFor[Register]())-1)
		}
		got[m[1]] = fmt.Sprintf("%s of %d", m[2], 1+strings.Count(m[3], ","))
	}
	want := make(map[string]string)
	for code, row := range commands {
		if row.Type != nil {
			want[fmt.Sprint(code)] = fmt.Sprintf("%s of %d", row.Type.Name(), storedFields(row.Type))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 18 {
		t.Errorf("commands (-code +page):\n%s", diff)
	}

	statuses = strings.Join(strings.Fields(statuses), " ")
	for s, name := range statusNames {
		if entry := fmt.Sprintf("%d %s", s, name); name != "" && !strings.Contains(statuses, entry) {
			t.Errorf("the page does not say %q", entry)
		}
	}
}

// storedFields counts the fields of a command, those of embedded structs included.
func storedFields(command reflect.Type) int {
	n := 0
	for _, f := range reflect.VisibleFields(command) {
		if !f.Anonymous {
			n++
		}
	}
	return n
}
