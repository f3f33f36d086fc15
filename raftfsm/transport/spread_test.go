package transport

import (
	"testing"

	"facet/internal/id"
)

// Each of three members comes first in about a third of the groups.
func TestSpreadDiffersBetweenGroups(t *testing.T) {
	t.Parallel()
	const clusters, groups = 200, 5
	same := 0
	for c := range clusters {
		firsts := map[int]bool{}
		for g := range groups {
			first := 0
			var least uint32
			for i := range 3 {
				m := id.NewMember(id.Node{UUID: id.UUID{0: byte(c), 7: byte(31 * c), 15: byte(i + 1)}}, uint32(c))
				if n := Spread(id.Shard(g), m); i == 0 || n < least {
					first, least = i, n
				}
			}
			firsts[first] = true
		}
		if len(firsts) == 1 {
			same++
		}
	}
	if same > clusters/20 { // by chance one in 81
		t.Errorf("one member comes first in all groups of %d clusters of %d", same, clusters)
	}
}
