package placement

import (
	"fmt"
	"slices"

	"facet/internal/id"
)

// moving is the state of a shard on the move, as its leader sees it.
type moving struct {
	self id.Member
	// goal has the members that should vote in the end, the preferred leader first.
	goal []id.Member
	// voters and learners are the group's members now.
	voters, learners []id.Member
	// ready has the learners that may vote now, current the members that have caught up.
	ready, current map[id.Member]bool
	// refused is the member that the last failed transfer was to, if any.
	refused id.Member
}

// moveStep is one change of a group's members, or a transfer of its leadership.
type moveStep struct {
	kind   moveStepKind
	member id.Member
}

type moveStepKind uint8

const (
	moveWait moveStepKind = iota
	moveAdd
	movePromote
	moveTransfer
	moveRemove
)

// next returns the next step towards the goal. New members first receive the log, then they
// vote. Then the leadership goes to a member that stays, and the others leave. The error says
// why a step has to wait for members to catch up.
//
// A group with an even number of voters survives no more deaths than with one voter less, and
// one more member can stop it. So two new members get their votes one right after the other,
// and two old ones leave in the same way (passing).
func (m moving) next() (moveStep, error) {
	members := slices.Concat(m.voters, m.learners)
	for _, g := range m.goal {
		if !slices.Contains(members, g) {
			return moveStep{moveAdd, g}, nil
		}
	}
	waiting := slices.DeleteFunc(slices.Clone(m.learners), func(l id.Member) bool { return !slices.Contains(m.goal, l) })
	if len(waiting) > 0 {
		return m.promote(waiting)
	}
	gone := slices.DeleteFunc(members, func(x id.Member) bool { return slices.Contains(m.goal, x) })
	if len(gone) == 0 {
		return moveStep{}, nil // meta's leader notes the end of the move
	}
	if err := m.enough(m.goal); err != nil {
		return moveStep{}, err
	}
	if slices.Contains(gone, m.self) {
		heirs := slices.DeleteFunc(slices.Clone(m.goal), func(g id.Member) bool { return !m.current[g] })
		next := (slices.Index(heirs, m.refused) + 1) % len(heirs)
		return moveStep{moveTransfer, heirs[next]}, nil
	}
	// One that is behind leaves first: the voters that are left must be able to go on.
	first := gone[max(0, slices.IndexFunc(gone, func(x id.Member) bool { return !m.current[x] }))]
	rest := slices.DeleteFunc(slices.Clone(m.voters), func(v id.Member) bool { return v == first })
	return moveStep{moveRemove, first}, m.enough(rest)
}

// promote returns the step that gives a vote to one of the learners of the goal. It waits
// until two of several are ready, unless one vote makes the number of voters odd.
func (m moving) promote(waiting []id.Member) (moveStep, error) {
	ready := slices.DeleteFunc(slices.Clone(waiting), func(l id.Member) bool { return !m.ready[l] })
	pair := len(m.voters)%2 == 1 && len(waiting) > 1
	if len(ready) == 0 || pair && len(ready) == 1 {
		return moveStep{}, nil
	}
	return moveStep{movePromote, ready[0]}, m.enough(append(slices.Clone(m.voters), ready[0]))
}

// passing reports whether the step leaves an even number of voters that the next step of the
// same kind makes odd.
func (m moving) passing(s moveStep) bool {
	voter := func(x id.Member) bool { return slices.Contains(m.voters, x) }
	wanted := func(x id.Member) bool { return slices.Contains(m.goal, x) }
	odd := len(m.voters)%2 == 1
	switch s.kind {
	case movePromote:
		return odd && slices.ContainsFunc(m.goal, func(g id.Member) bool { return !voter(g) && g != s.member })
	case moveRemove:
		return odd && voter(s.member) && slices.ContainsFunc(m.voters, func(v id.Member) bool { return !wanted(v) && v != s.member })
	default:
		return false
	}
}

// enough returns an error unless a majority of voters has caught up.
func (m moving) enough(voters []id.Member) error {
	have, quorum := 0, len(voters)/2+1
	for _, v := range voters {
		if m.current[v] {
			have++
		}
	}
	if have < quorum {
		return fmt.Errorf("%d of %d voters have caught up, and it takes %d", have, len(voters), quorum)
	}
	return nil
}
