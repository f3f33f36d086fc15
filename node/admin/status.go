package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/membership"
	"facet/node/peer"
	"facet/node/receipt"
	"facet/node/replicas"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

const (
	// statusFanOut is the most nodes that the port asks at once.
	statusFanOut = 16
	// statusTries is how often a node is asked: when an authority retires, both nodes cut their
	// connections, one after the other.
	statusTries = 3

	// methodStatus asks a node for its report on itself.
	methodStatus = "node.status"
)

// Own returns this node's report on itself.
func (p *Port) Own() wire.Member {
	s := wire.Member{
		ID: p.cfg.Node, Name: p.cfg.Name, URL: p.cfg.PublicURL, Peer: p.cfg.Peer,
		Alive: true, Answers: true, Version: wire.Version, Groups: []wire.GroupStatus{}, Alarms: p.cfg.Alarms(), CutLinks: p.cfg.CutLinks(),
		Credentials: p.cfg.Keys.Credentials(),
	}
	for _, state := range p.cfg.Parts() {
		s.Parts = append(s.Parts, wire.Part(state))
	}
	for _, number := range p.cfg.Replicas.All() {
		group, ok := p.cfg.Replicas.Group(number)
		if !ok {
			continue
		}
		g := group.Status()
		leader, _ := g.Leader.Node() // the zero id without a known leader
		status := wire.GroupStatus{
			Group: number, Role: roleOf(g.State), Leader: leader, Term: g.Term, Commit: g.Commit, Applied: g.Applied,
		}
		votes := false
		for _, server := range g.Servers {
			if server.Voter {
				status.Voters++
				votes = votes || server.Member == p.cfg.Self
			}
		}
		if !votes && (status.Role == "follower" || status.Role == "candidate") { // also one that is no member yet
			status.Role = "non-voter"
		}
		if machine, ok := p.cfg.Replicas.Shard(number); ok {
			status.Events = machine.Shard().Stats().Active
		}
		s.Groups = append(s.Groups, status)
	}
	return s
}

func roleOf(state string) string {
	switch state {
	case "Leader":
		return "leader"
	case "Candidate":
		return "candidate"
	case "Follower":
		return "follower"
	default:
		return "stopped"
	}
}

// Status describes the cluster as this node sees it, with the reports of the nodes that
// answer in time.
func (p *Port) Status(ctx context.Context) wire.Status {
	cluster, founded := p.cfg.Replicas.Meta().Cluster()
	s := wire.Status{
		Cluster: cluster.ID, Founded: founded, Pack: p.cfg.Pack,
		Shards: cluster.Shards, Replicas: cluster.WantedReplicas(), Level: p.cfg.Replicas.Meta().Level(), Warnings: []string{},
	}
	if len(cluster.Signer.WrappedSeed) > 0 {
		s.ReceiptKey, _ = receipt.PublicKey(cluster.ID, cluster.Signer.Public[:]) // of 32 bytes, and the name is plain
	}
	alive := map[id.Node]membership.Member{}
	for _, m := range p.cfg.Gossip.Members() {
		if node, err := m.Member.Node(); err == nil {
			alive[node] = m
		}
	}
	members := p.cfg.Replicas.Members(id.Meta)
	for _, record := range p.cfg.Replicas.Meta().Nodes() {
		if record.State == metafsm.NodeRemoved && !slices.Contains(members, record.Member) {
			continue
		}
		node := wire.Member{ID: record.ID, Name: record.Name, Groups: []wire.GroupStatus{}}
		if m, ok := alive[record.ID]; ok {
			node.Alive, node.URL, node.Peer, node.Version = true, m.PublicURL, m.Address, m.Version
		}
		s.Nodes = append(s.Nodes, node)
	}
	p.askAll(ctx, s.Nodes, alive)
	slices.SortFunc(s.Nodes, func(a, b wire.Member) int { return cmp.Compare(a.Name+a.ID.String(), b.Name+b.ID.String()) })
	p.describe(s.Nodes)
	lags(s.Nodes)
	s.Moves = moves(p.cfg.Replicas.Meta().Shards(), s.Nodes)
	s.Voting = voting(s.Nodes)
	// A group that is being founded has one entry until it has a leader.
	if log := p.cfg.Replicas.MetaGroup().Status(); !founded && log.Last > 1 && log.Applied < log.Last {
		s.Unread = true
		s.Warnings = append([]string{"this node has not read the records of its cluster: it reaches no majority of the nodes that keep them"}, p.cfg.Alarms()...)
		return s
	}
	s.Warnings = warnings(s)
	return s
}

// describe fills in zone and state from meta's records of nodes.
func (p *Port) describe(nodes []wire.Member) {
	for _, r := range p.cfg.Replicas.Meta().Nodes() {
		if i := slices.IndexFunc(nodes, func(m wire.Member) bool { return m.ID == r.ID }); i >= 0 {
			nodes[i].Zone, nodes[i].State = r.Zone, stateNames[r.State]
		}
	}
}

var stateNames = map[metafsm.NodeState]string{
	metafsm.NodeActive: wire.StateActive, metafsm.NodeDraining: wire.StateDraining, metafsm.NodeRemoved: wire.StateRemoved,
}

// askAll asks the nodes for their reports. Each report that arrives replaces the node's entry.
func (p *Port) askAll(ctx context.Context, nodes []wire.Member, alive map[id.Node]membership.Member) {
	ctx, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	var work sync.WaitGroup
	slots := make(chan struct{}, statusFanOut)
	for i := range nodes {
		if nodes[i].ID == p.cfg.Node {
			nodes[i] = p.Own()
			continue
		}
		m, ok := alive[nodes[i].ID]
		if !ok {
			continue
		}
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var own wire.Member
			var err error
			for range statusTries {
				if err = p.cfg.Peers.Ask(ctx, m.Member, methodStatus, nil, &own); err == nil {
					nodes[i] = own
					return
				}
			}
			p.cfg.Log.DebugContext(ctx, "a node's status can't be read", "node", m.Member, "err", err)
		})
	}
	work.Wait()
}

// lags fills in how many entries each replica is behind its group's leader.
func lags(nodes []wire.Member) {
	commit := map[id.Shard]uint64{}
	for _, node := range nodes {
		for _, g := range node.Groups {
			if g.Role == "leader" {
				commit[g.Group] = max(commit[g.Group], g.Commit)
			}
		}
	}
	for _, node := range nodes {
		for i, g := range node.Groups {
			node.Groups[i].Lag = max(commit[g.Group], g.Commit) - g.Applied
		}
	}
}

// voting counts the shards by the number of their voters, as their leaders report it.
func voting(nodes []wire.Member) map[int]int {
	newest := map[id.Shard]wire.GroupStatus{}
	for _, node := range nodes {
		for _, g := range node.Groups {
			if g.Group != id.Meta && g.Role == "leader" && g.Term >= newest[g.Group].Term {
				newest[g.Group] = g
			}
		}
	}
	counts := map[int]int{}
	for _, g := range newest {
		counts[g.Voters]++
	}
	return counts
}

// warnings describes what is wrong with the cluster, and which groups would stop if one more
// node died.
func warnings(s wire.Status) []string {
	list := []string{}
	if !s.Founded {
		return append(list, "the cluster is not founded yet")
	}
	answering := map[id.Shard]int{}
	voters := map[id.Shard]int{}
	for _, node := range s.Nodes {
		if !node.Answers {
			list = append(list, fmt.Sprintf("node %s (%s) does not answer", node.Name, node.ID))
		}
		for _, alarm := range node.Alarms {
			list = append(list, fmt.Sprintf("node %s (%s): %s", node.Name, node.ID, alarm))
		}
		for _, g := range node.Groups {
			if g.Role != "non-voter" {
				answering[g.Group]++
			}
			voters[g.Group] = max(voters[g.Group], g.Voters)
		}
	}
	list = append(list, linkWarnings(s)...)
	list = append(list, credentialWarnings(s)...)
	alone := len(s.Nodes) == 1
	if alone {
		list = append(list, "there is one node: nothing has a second replica, and its death stops everything")
	}
	silent := s.Leaderless()
	var lone []id.Shard
	thin := map[[2]int][]id.Shard{} // by the numbers of replicas that answer and that are wanted
	for number := range id.Shard(s.Shards + 1) {
		wanted := voters[number]
		if number != id.Meta {
			wanted = max(wanted, s.Replicas)
		}
		switch have := answering[number]; {
		case slices.Contains(silent, number):
		case have == 1 && wanted == 1 && !alone:
			lone = append(lone, number)
		case have == voters[number]/2+1 && !alone:
			thin[[2]int{have, wanted}] = append(thin[[2]int{have, wanted}], number)
		}
	}
	if len(silent) > 0 {
		list = append(list, numbered(silent, "%s has no leader that answers: its data can't be read or written", "%s have no leader that answers: their data can't be read or written"))
	}
	if len(lone) > 0 {
		list = append(list, numbered(lone, "%s has one replica, as ordered", "%s have one replica each, as ordered")+
			": the death of its node stops a shard, and the loss of its disk loses it (facet cluster replicas 3)")
	}
	for _, n := range slices.SortedFunc(maps.Keys(thin), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		of := fmt.Sprintf("%d of %d replicas: one more death stops", n[0], n[1])
		list = append(list, numbered(thin[n], "%s has "+of+" it", "%s have "+of+" them"))
	}
	return list
}

// numbered formats a sentence about groups, with the names of the groups in place of %s. The
// sentence is one for a single group and several otherwise.
func numbered(groups []id.Shard, one, several string) string {
	if len(groups) == 1 {
		return fmt.Sprintf(one, replicas.Name(groups[0]))
	}
	return fmt.Sprintf(several, namesOf(groups))
}

// namesOf lists groups, which are ascending: "meta, shards 1-3, 5".
func namesOf(groups []id.Shard) string {
	var text []string
	if groups[0] == id.Meta {
		text, groups = append(text, replicas.Name(id.Meta)), groups[1:]
	}
	word := "shards "
	if len(groups) == 1 {
		word = "shard "
	}
	for len(groups) > 0 {
		n := 1
		for n < len(groups) && groups[n] == groups[0]+id.Shard(n) {
			n++
		}
		if n == 1 {
			text = append(text, fmt.Sprintf("%s%d", word, groups[0]))
		} else {
			text = append(text, fmt.Sprintf("%s%d-%d", word, groups[0], groups[n-1]))
		}
		word, groups = "", groups[n:]
	}
	return strings.Join(text, ", ")
}

// linkWarnings names the cut links, each once: both ends report it.
func linkWarnings(s wire.Status) []string {
	var list []string
	seen := map[[2]id.Node]bool{}
	for _, node := range s.Nodes {
		for _, l := range node.CutLinks {
			if seen[[2]id.Node{l.To, node.ID}] {
				continue
			}
			seen[[2]id.Node{node.ID, l.To}] = true
			list = append(list, fmt.Sprintf("the link between nodes %s and %s has been cut since %s: %s relays what they send each other",
				node.Name, l.Name, l.Since.Format(time.TimeOnly+" MST"), l.Through))
		}
	}
	return list
}

// credentialWarnings warns of certificates that end soon and of unfinished rotations.
func credentialWarnings(s wire.Status) []string {
	var list []string
	var first *wire.Credentials
	differ := map[string]bool{}
	for _, m := range s.Nodes {
		c := m.Credentials
		if c == nil {
			continue
		}
		for _, e := range c.Expiries() {
			if now := time.Now(); e.Soon(now) {
				list = append(list, fmt.Sprintf("node %s (%s): %s", m.Name, m.ID, e.In(now)))
			}
		}
		if first == nil {
			first = c
		}
		differ["a rotation of the gossip key"] = differ["a rotation of the gossip key"] || len(c.Gossip) > 1 || !slices.EqualFunc(c.Gossip, first.Gossip, wire.KeyInfo.Same)
		differ["a rotation of the cluster key"] = differ["a rotation of the cluster key"] || len(c.Cluster) > 1 || !slices.EqualFunc(c.Cluster, first.Cluster, wire.KeyInfo.Same)
		differ["a rotation of the authority"] = differ["a rotation of the authority"] || len(c.Trusted) > 1 || !slices.Equal(c.Trusted, first.Trusted)
	}
	for _, what := range []string{"gossip key", "cluster key", "authority"} {
		if differ["a rotation of the "+what] {
			list = append(list, fmt.Sprintf("a rotation of the %s is not over: facet cluster status shows how far it is", what))
		}
	}
	return list
}
