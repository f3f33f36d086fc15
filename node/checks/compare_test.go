package checks

import (
	"fmt"
	"testing"

	"facet/internal/id"
	"facet/raftfsm"
)

func TestMajorityDecidesState(t *testing.T) {
	t.Parallel()
	// Each letter is a member's digest: upper case a voter's, "-" a voter's that gave
	// none, lower case a non-voter's; a digit is a voter on other software.
	f := func(members, want string) {
		t.Helper()
		var servers []raftfsm.Server
		sums := map[id.Member]sumAnswer{}
		for i, c := range members {
			m := id.Member(fmt.Sprint(i))
			voter := c < 'a'
			servers = append(servers, raftfsm.Server{Member: m, Voter: voter})
			if c == '-' {
				continue
			}
			a := sumAnswer{Open: true, Known: true, Software: "1", Digest: [32]byte{byte(c) &^ 0x20}}
			if c >= '0' && c <= '9' {
				a.Software = "2"
			}
			sums[m] = a
		}
		v := compare(servers, sums)
		if got := fmt.Sprint(v.diverged, v.torn); got != want {
			t.Errorf("%s: got %s, want %s", members, got, want)
		}
	}
	f("AAA", "[] false")
	f("AAB", "[2] false")
	f("BAA", "[0] false")
	f("AB", "[] true")
	f("AB-", "[] true")
	f("AA-", "[] false")
	f("A--", "[] false")
	f("ABC", "[] true")
	f("AABB", "[] true")
	f("AAABB", "[3 4] false")
	f("AAAb", "[3] false")
	f("AAbb", "[2 3] false")
	f("Abbb", "[1 2 3] false")
	f("AA1", "[] false")
	f("A11", "[] false")
	f("AB1", "[] true")
}

// One replica that stays as it is, comparison after comparison, is one.
func TestDifferingReplicaIsCountedOnce(t *testing.T) {
	t.Parallel()
	var known []id.Member
	f := func(told, differs, want string) {
		t.Helper()
		sums := map[id.Member]sumAnswer{}
		for _, m := range told {
			sums[id.Member(m)] = sumAnswer{Known: true}
		}
		var v verdict
		for _, m := range differs {
			v.diverged = append(v.diverged, id.Member(m))
		}
		known = stillDiffer(known, v, sums)
		if got := fmt.Sprint(known); got != want {
			t.Errorf("%s told, %s differ: got %s, want %s", told, differs, got, want)
		}
	}
	f("abc", "c", "[c]")
	f("abc", "c", "[c]")
	f("ab", "", "[c]")
	f("abc", "bc", "[b c]")
	f("abc", "", "[]")
}
