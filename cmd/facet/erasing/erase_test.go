package erasing

import (
	"fmt"
	"testing"

	"facet/internal/id"
	"facet/node/receipt"
)

func TestMissingNamesNodes(t *testing.T) {
	t.Parallel()
	one, two := id.Node{UUID: id.Random([16]byte{1})}, id.Node{UUID: id.Random([16]byte{2})}
	f := func(name, want string) {
		t.Helper()
		r := &receipt.Receipt{
			Replicas: []receipt.Replica{{Group: 1, Node: one, Name: "n1"}, {Group: 2, Node: one, Name: "n1"}, {Group: 1, Node: two, Name: name}},
			Missing:  []string{fmt.Sprintf("shard 1 on node n1 (%s): why", one), fmt.Sprintf("shard 1 on node %s (%s): why", name, two)},
		}
		if got := missing(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("n2", "shard 1 on node n1: why\n  shard 1 on node n2: why")
	f("n1", fmt.Sprintf("shard 1 on node n1 (%s): why\n  shard 1 on node n1 (%s): why", one, two))
}
