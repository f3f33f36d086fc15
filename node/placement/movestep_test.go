package placement

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"facet/internal/id"
)

// letters returns a member for each letter.
func letters(of string) (list []id.Member) {
	for _, c := range of {
		list = append(list, id.Member(string(c)))
	}
	return list
}

// moveCase draws a group: its members as in metaCase, then its goal and who is behind. The
// first voter leads.
func moveCase(members, goal, behind string) (moveStep, bool, error) {
	m := moving{goal: letters(goal), ready: map[id.Member]bool{}, current: map[id.Member]bool{}}
	for _, c := range members {
		who := id.Member(strings.ToLower(string(c)))
		current := !strings.Contains(behind, string(who))
		m.ready[who], m.current[who] = current, current
		if c < 'a' {
			m.voters = append(m.voters, who)
		} else {
			m.learners = append(m.learners, who)
		}
	}
	m.self = m.voters[0]
	step, err := m.next()
	return step, m.passing(step), err
}

func TestMoveStepsKeepMajority(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what                  string
		members, goal, behind string
		want                  moveStep
		passing, waits        bool
	}{
		{"a new member receives the log first", "ABC", "abd", "", moveStep{moveAdd, "d"}, false, false},
		{"it votes when it has caught up", "ABCd", "abd", "", moveStep{movePromote, "d"}, false, false},
		{"and not before", "ABCd", "abd", "d", moveStep{}, false, false},
		{"nor while a majority of the voters has not", "ABCd", "abd", "bc", moveStep{movePromote, "d"}, false, true},
		{"then the old member leaves", "ABCD", "abd", "", moveStep{moveRemove, "c"}, false, false},
		{"not while a majority of the new voters is behind", "ABCD", "abd", "bd", moveStep{}, false, true},
		{"the leader hands over before it leaves", "ABCD", "bcd", "b", moveStep{moveTransfer, "c"}, false, false},
		{"two receive the log", "Ab", "abc", "", moveStep{moveAdd, "c"}, false, false},
		{"one of two waits for the other", "Abc", "abc", "c", moveStep{}, false, false},
		{"they get their votes together", "Abc", "abc", "", moveStep{movePromote, "b"}, true, false},
		{"the second without the first", "ABc", "abc", "", moveStep{movePromote, "c"}, false, false},
		{"also as fourth and fifth", "ABCde", "abcde", "", moveStep{movePromote, "d"}, true, false},
		{"three of five leave the fourth for later", "ABCDE", "abc", "", moveStep{moveRemove, "d"}, true, false},
		{"the fifth leaves alone", "ABCE", "abc", "", moveStep{moveRemove, "e"}, false, false},
		{"one stays of three", "ABC", "a", "", moveStep{moveRemove, "b"}, true, false},
		{"one of three stays only if it has caught up", "ABC", "b", "b", moveStep{}, false, true},
		{"and leads", "ABC", "b", "", moveStep{moveTransfer, "b"}, false, false},
		{"a member that does not answer leaves first", "ABC", "a", "c", moveStep{moveRemove, "c"}, true, false},
		{"all is done", "ABC", "abc", "c", moveStep{}, false, false},
	} {
		got, passing, err := moveCase(c.members, c.goal, c.behind)
		if got != c.want || passing != c.passing || (err != nil) != c.waits {
			t.Errorf("%s: %s to %s without %q: got %v, passing %v, %v", c.what, c.members, c.goal, c.behind, got, passing, err)
		}
	}
}

// The caught-up members of the goal get the leadership in turn, from the one after the last
// that failed.
func TestLeaderThatLeavesTriesNextHeir(t *testing.T) {
	t.Parallel()
	m := moving{self: "a", goal: letters("bcde"), voters: letters("abcde"), current: map[id.Member]bool{"b": true, "d": true, "e": true}}
	for _, want := range letters("bdeb") {
		step, err := m.next()
		if err != nil || step != (moveStep{moveTransfer, want}) {
			t.Errorf("after %q: got %v, %v; want %s", m.refused, step, err, want)
		}
		m.refused = step.member
	}
}

// apply carries out a step. A new member has not caught up.
func (m *moving) apply(s moveStep) {
	gone := func(x id.Member) bool { return x == s.member }
	switch s.kind {
	case moveAdd:
		m.learners = append(m.learners, s.member)
	case movePromote:
		m.learners, m.voters = slices.DeleteFunc(m.learners, gone), append(m.voters, s.member)
	case moveTransfer:
		m.self = s.member
	case moveRemove:
		m.learners, m.voters = slices.DeleteFunc(m.learners, gone), slices.DeleteFunc(m.voters, gone)
	case moveWait:
	}
}

// Groups go between any two sets of members, while members fall behind, catch up and get
// another goal.
func TestMovesConvergeWithoutLosingMajority(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(14, 1))
	some := func() []id.Member {
		list := letters("abcdefg")
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:1+2*r.IntN(3)]
	}
	for round := range 3000 {
		m := moving{voters: some(), goal: some(), ready: map[id.Member]bool{}, current: map[id.Member]bool{}}
		m.self = m.voters[0]
		pairs := 0
		for steps := 0; !slices.Equal(slices.Sorted(slices.Values(m.voters)), slices.Sorted(slices.Values(m.goal))) || len(m.learners) > 0; steps++ {
			if steps > 60 {
				t.Fatalf("round %d: no end: %+v", round, m)
			}
			if steps < 20 && r.IntN(10) == 0 {
				m.goal = some()
			}
			for _, who := range letters("abcdefg") {
				ok := steps >= 30 || r.IntN(4) > 0 || who == m.self
				m.ready[who], m.current[who] = ok, ok
			}
			step, err := m.next()
			if err != nil {
				continue
			}
			if step.kind == moveRemove && (step.member == m.self || slices.Contains(m.goal, step.member)) {
				t.Fatalf("round %d: %v of %+v", round, step, m)
			}
			again := m.passing(step)
			m.apply(step)
			if step.kind == movePromote || step.kind == moveRemove {
				if err := m.enough(m.voters); err != nil {
					t.Fatalf("round %d: after %v: %v in %+v", round, step, err, m)
				}
			}
			if again {
				pairs++
				second, err := m.next()
				if err != nil || second.kind != step.kind || len(m.voters)%2 > 0 {
					t.Fatalf("round %d: after %v came %v, %v in %+v", round, step, second, err, m)
				}
				m.apply(second)
			}
		}
		if m.self != m.goal[0] && !slices.Contains(m.goal, m.self) {
			t.Fatalf("round %d: %s leads %v", round, m.self, m.goal)
		}
	}
}
