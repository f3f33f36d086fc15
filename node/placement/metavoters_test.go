package placement

import (
	"strings"
	"testing"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

// metaCase draws meta's members: a capital letter votes, a small one does not.
// seats has the letters of the nodes that may stay; ? behind one tells that it is
// missed, ! that it is away.
func metaCase(members, seats, removed, holders string) metaStep {
	var list []metaMember
	for _, c := range members {
		list = append(list, metaMember{id.Member(strings.ToLower(string(c))), c < 'a'})
	}
	var places []metafsm.Seat
	for _, c := range seats {
		switch c {
		case '?':
			places[len(places)-1].Missed = true
		case '!':
			places[len(places)-1].Missed, places[len(places)-1].Away = true, true
		default:
			places = append(places, metafsm.Seat{Member: id.Member(string(c))})
		}
	}
	set := func(letters string) map[id.Member]bool {
		out := map[id.Member]bool{}
		for _, c := range letters {
			out[id.Member(string(c))] = true
		}
		return out
	}
	return nextMetaStep(list, places, set(removed), set(holders))
}

func TestMetaKeepsOddNumberOfVoters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what                             string
		members, seats, removed, holders string
		want                             metaStep
	}{
		{"three are enough of four", "ABCd", "abcd", "", "", metaStep{}},
		{"five nodes have five", "ABCde", "abcde", "", "", metaStep{metaPromote, "d"}},
		{"and no more", "ABCDEf", "abcdef", "", "", metaStep{}},
		{"a sixth one goes", "ABCDEFg", "abcdefg", "", "", metaStep{metaDemote, "f"}},
		{"four founders stay four", "ABCD", "abcd", "", "", metaStep{}},
		{"one that leaves is replaced first", "ABCd", "bcd", "", "a", metaStep{metaPromote, "d"}},
		{"and goes then", "ABCD", "bcd", "", "a", metaStep{metaDemote, "a"}},
		{"one that was removed keeps its log while it holds replicas", "aBCD", "bcd", "a", "a", metaStep{}},
		{"and goes when it holds none", "aBCD", "bcd", "a", "", metaStep{metaRemove, "a"}},
		{"a removed voter goes at once when it holds none", "ABCD", "bcd", "a", "", metaStep{metaRemove, "a"}},
		{"one that is missed stays", "ABCd", "a?bcd", "", "", metaStep{}},
		{"one that is away is replaced", "ABCd", "a!bcd", "", "", metaStep{metaPromote, "d"}},
		{"and goes then, too", "ABCD", "a!bcd", "", "", metaStep{metaDemote, "a"}},
		{"nobody replaces one of three", "ABC", "a!bc", "", "", metaStep{}},
		{"nobody who is missed replaces one", "ABCd", "a!bcd?", "", "", metaStep{}},
		{"two that stay are better than three of which one leaves", "ABC", "bc", "", "", metaStep{metaDemote, "a"}},
		{"the last one stays", "A", "", "", "", metaStep{}},
	} {
		if got := metaCase(c.members, c.seats, c.removed, c.holders); got != c.want {
			t.Errorf("%s: %s with seats %s: got %v, want %v", c.what, c.members, c.seats, got, c.want)
		}
	}
}

func TestMetaVotersSpreadOverZones(t *testing.T) {
	t.Parallel()
	members := []metaMember{{"a", true}, {"b", false}, {"c", false}}
	seats := []metafsm.Seat{{Member: "a", Zone: "x"}, {Member: "b", Zone: "x"}, {Member: "c", Zone: "y"}}
	if got := nextMetaStep(members, seats, nil, nil); got != (metaStep{metaPromote, "c"}) {
		t.Errorf("got %v", got)
	}
}
