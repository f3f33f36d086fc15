package placement

import (
	"fmt"
	"slices"

	"facet/internal/id"
)

// moving is what the leader of a shard on the move knows of the group's members.
type moving struct {
	self id.Member
	// goal has the members that should vote in the end, the preferred leader first.
	goal []id.Member
	// voters and learners are the group's members now.
	voters, learners []id.Member
	// ready has the learners that may vote now, current the members that have caught up.
	ready, current map[id.Member]bool
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
		heir := slices.IndexFunc(m.goal, func(g id.Member) bool { return m.current[g] })
		return moveStep{moveTransfer, m.goal[heir]}, nil
	}
	return moveStep{moveRemove, gone[0]}, nil
}

// promote returns the step that gives a vote to a learner of the goal.
func (m moving) promote(waiting []id.Member) (moveStep, error) {
	for _, l := range waiting {
		if m.ready[l] {
			return moveStep{movePromote, l}, m.enough(append(slices.Clone(m.voters), l))
		}
	}
	return moveStep{}, nil
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
