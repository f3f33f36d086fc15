package placement

import (
	"context"
	"slices"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

// keepMetaVoters makes the next change towards the voters that meta should have. A node that
// was removed from the cluster stays a member of meta until it holds no replica.
func (p *Placement) keepMetaVoters(ctx context.Context, seats []metafsm.Seat) error {
	group := p.cfg.Replicas.MetaGroup()
	servers, index, err := group.Servers()
	if err != nil || index == 0 {
		return err
	}
	var members []metaMember
	for _, s := range servers {
		members = append(members, metaMember{s.Member, s.Voter})
	}
	switch step := nextMetaStep(members, seats, p.removed(), p.Holders()); step.kind {
	case metaPromote:
		commit := group.Status().Commit
		voters := []id.Member{step.member}
		for _, m := range members {
			if m.voter {
				voters = append(voters, m.member)
			}
		}
		if p.cfg.Replicas.CaughtUp(ctx, id.Meta, commit, voters[:1]) == 0 {
			return nil // it has not caught up yet
		}
		if err := p.cfg.Replicas.Enough(ctx, id.Meta, commit, voters); err != nil {
			return err
		}
		p.cfg.Log.InfoContext(ctx, "a node becomes a voter of meta", "node", step.member)
		return group.AddVoter(ctx, step.member, index)
	case metaDemote, metaRemove:
		if step.member == p.cfg.Self {
			return group.Transfer(ctx, "")
		}
		p.cfg.Log.InfoContext(ctx, "a node leaves meta", "node", step.member, "stays", step.kind == metaDemote)
		if step.kind == metaDemote {
			return group.Demote(ctx, step.member, index)
		}
		return group.Remove(ctx, step.member, index)
	default:
		return nil
	}
}

// metaMember is a member of meta.
type metaMember struct {
	member id.Member
	voter  bool
}

// metaStep is a change of meta's members.
type metaStep struct {
	kind   metaStepKind
	member id.Member
}

type metaStepKind uint8

const (
	metaStay metaStepKind = iota
	metaPromote
	metaDemote
	metaRemove
)

// nextMetaStep returns the next change of meta's members. The goal is VotersMax voters, or
// the largest odd number of voters for fewer nodes.
//   - A voter that must leave goes as soon as another member votes.
//   - A voter that is away goes when VotersMax others vote. It also goes when at least
//     three others vote and the number of voters is even.
//   - Of more than VotersMax voters, one of the zone with the most goes. There are more when one
//     that was away comes back after it was replaced.
func nextMetaStep(members []metaMember, seats []metafsm.Seat, removed, holders map[id.Member]bool) metaStep {
	seat := map[id.Member]metafsm.Seat{}
	for _, s := range seats {
		seat[s.Member] = s
	}
	zones := map[string]int{}
	var good, bad, spare []id.Member
	for _, m := range members {
		s, ok := seat[m.member]
		switch {
		case m.voter && ok && !s.Away:
			good = append(good, m.member)
			zones[s.Zone]++
		case m.voter:
			bad = append(bad, m.member)
		case ok && !s.Missed && !s.Away:
			spare = append(spare, m.member)
		}
	}
	want := min(VotersMax, len(good)+len(spare))
	if want > 2 {
		want -= 1 - want%2
	}
	if len(good) < want {
		return metaStep{metaPromote, slices.MinFunc(spare, func(a, b id.Member) int { return zones[seat[a].Zone] - zones[seat[b].Zone] })}
	}
	for _, m := range bad {
		_, known := seat[m]
		switch {
		case !known && removed[m] && !holders[m]:
			return metaStep{metaRemove, m}
		case !known && len(good) > 0, len(good) >= VotersMax, len(good) >= 3 && (len(good)+len(bad))%2 == 0:
			return metaStep{metaDemote, m}
		}
	}
	if len(bad) == 0 && len(good) > VotersMax {
		slices.Reverse(good)
		return metaStep{metaDemote, slices.MaxFunc(good, func(a, b id.Member) int { return zones[seat[a].Zone] - zones[seat[b].Zone] })}
	}
	for _, m := range members {
		if !m.voter && removed[m.member] && !holders[m.member] {
			return metaStep{metaRemove, m.member}
		}
	}
	return metaStep{}
}
