package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"facet/internal/id"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/transport/memnet"
	"facet/node/wire"
)

// Faults that take away what a node has written, or run it twice. Each waits until the
// cluster is whole: more than a minority of lost replicas is not to be survived.

const (
	// noticeTime is the longest until a node notices what it has lost.
	noticeTime = 30 * time.Second
	// toldTime is the time after which a node's peers know what it has acknowledged.
	toldTime = 2500 * time.Millisecond
	// copyHost is the host of a node's copy.
	copyHost = "10.0.0.50"
)

// parts are the parts of a replica's folder. The empty one is the whole folder.
var parts = []string{"snapshots", "raft.db", "segments", ""}

// loseState kills a node and removes a part of one of its replicas, or all of them.
func loseState(s *attackedWorld, v int) (undo func()) {
	s.settleWhole()
	time.Sleep(toldTime) // the majority gets what the node could not send before, however long that was
	m := s.cluster.Nodes[v]
	s.kill(v)
	var lost []string
	for _, folder := range replicaFolders(m.Config.Dir) {
		for _, part := range parts {
			if path := filepath.Join(folder, part); holdsFiles(path) {
				lost = append(lost, path)
			}
		}
	}
	lost = []string{lost[s.random.IntN(len(lost))]}
	if s.random.IntN(8) == 0 {
		lost = replicaFolders(m.Config.Dir)
	}
	for _, path := range lost {
		s.say("  %s loses %s", m.Config.Name, strings.TrimPrefix(path, m.Config.Dir))
		if err := os.RemoveAll(path); err != nil {
			s.t.Error(err)
		}
	}
	return s.startLost(v, time.Now(), true)
}

// rollBack kills a node and starts it with its files of some seconds ago.
func rollBack(s *attackedWorld, v int) (undo func()) {
	s.settleWhole()
	m := s.cluster.Nodes[v]
	s.kill(v)
	since, old := time.Now(), m.Config.Dir+".old"
	if err := os.CopyFS(old, os.DirFS(m.Config.Dir)); err != nil {
		s.t.Error(err)
	}
	s.cluster.Restart(v)
	s.settleWhole()
	before := applied(m.Node)
	time.Sleep(time.Duration(s.random.Int64N(int64(6 * time.Second))))
	grown := false
	for group, index := range applied(m.Node) {
		grown = grown || index > before[group]
	}
	time.Sleep(toldTime)
	s.kill(v)
	if err := errors.Join(refill(m.Config.Dir, old), os.RemoveAll(old)); err != nil {
		s.t.Error(err)
	}
	return s.startLost(v, since, grown)
}

// duplicate runs a copy of a node in one of three ways. A copy ends while the node is heard.
// A copy of a node that was cut off takes over: if it is older than the node's last start it
// ends, and else the node ends when it is heard again.
func duplicate(s *attackedWorld, v int) (undo func()) {
	s.settleWhole()
	m := s.cluster.Nodes[v]
	s.kill(v)
	twin := s.cluster.Duplicate(v, copyHost)
	cut := func() (heal func()) { return s.links(v, memnet.Link{Cut: true}, memnet.Link{Cut: true}) }
	open := func() *node.Node {
		n, err := node.Open(s.t.Context(), twin.Config)
		if err != nil {
			s.t.Fatalf("open a copy: %v", err)
		}
		return n
	}
	switch s.random.IntN(3) {
	case 0:
		s.cluster.Restart(v)
		s.settleWhole()
		s.ends(open(), "a copy of a running node")
		return func() {}
	case 1:
		s.cluster.Restart(v)
		s.settleWhole()
		time.Sleep(toldTime)
		s.say("  %s is cut off, and its older copy starts", m.Config.Name)
		heal := cut()
		s.ends(open(), "an older copy of a node that is cut off")
		return func() {
			time.Sleep(toldTime) // while the copy counts as heard, the node would end for it
			heal()
		}
	}
	s.say("  %s is cut off, and its copy starts", m.Config.Name)
	began := time.Now()
	heal := cut()
	s.cluster.Restart(v)
	copied := open()
	return func() {
		defer func() { s.forfeit(v, began) }()
		select {
		case <-copied.Ready():
		case <-time.After(noticeTime):
			s.t.Errorf("a copy of a node that is cut off does not take over in %s", noticeTime)
		}
		heal()
		s.ends(m.Node, "a node whose copy has taken over")
		m.Node = nil
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		_ = copied.Close(ctx) // without a quorum for its leaderships it takes its time
		if err := refill(m.Config.Dir, twin.Config.Dir); err != nil {
			s.t.Error(err)
		}
		s.cluster.Restart(v)
		s.settleWhole()
		time.Sleep(toldTime) // until then the directory says that it belongs to the copy's address
	}
}

// ends waits until a node has ended by itself, and closes it.
func (s *attackedWorld) ends(n *node.Node, what string) {
	select {
	case <-n.Done():
		s.say("  %s has ended: %v", what, n.Err())
	case <-time.After(noticeTime):
		s.t.Errorf("%s goes on", what)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = n.Close(ctx) // it has failed
}

// startLost starts a node that has lost what it wrote since a time. Half of the time another node is down
// meanwhile, so that the two others could form a majority. A node that notices its loss
// takes the replica out of service, or ends and is replaced. Unless it notices, the test
// fails if the loss is noticeable.
func (s *attackedWorld) startLost(v int, since time.Time, noticeable bool) (undo func()) {
	s.forfeit(v, since)
	m := s.cluster.Nodes[v]
	other := (v + 1) % len(s.cluster.Nodes)
	down := s.random.IntN(2) == 0
	if down {
		s.say("  %s is down meanwhile", s.cluster.Nodes[other].Config.Name)
		s.kill(other)
	}
	known := outages(m.Config.Dir)
	n, err := node.Open(s.t.Context(), m.Config)
	if err == nil {
		m.Node = n
	} else {
		s.say("  %s does not start: %v", m.Config.Name, err)
	}
	// With another node down, a replica may have to wait for that node before it learns
	// what it has lost.
	within := noticeTime
	if down || !noticeable {
		within = toldTime
	}
	noticed := err != nil || s.notices(m, known, within)
	return func() {
		if down {
			s.cluster.Restart(other)
		}
		if !noticed && noticeable && !s.notices(m, known, noticeTime) {
			s.t.Errorf("%s has not noticed in %s what it has lost", m.Config.Name, noticeTime)
		}
		if m.Node != nil && !ended(m.Node) {
			time.Sleep(toldTime) // meta may notice after a shard
		}
		if m.Node != nil && !ended(m.Node) {
			return
		}
		if m.Node != nil {
			s.ends(m.Node, "a node that lost state of meta")
			m.Node = nil
		}
		s.replace(v)
	}
}

// notices waits until a node has ended or has a new replica out of service.
func (s *attackedWorld) notices(m *nodetest.Member, known []string, within time.Duration) bool {
	for began := time.Now(); time.Since(began) < within; time.Sleep(10 * time.Millisecond) {
		if ended(m.Node) {
			return true
		}
		for _, name := range outages(m.Config.Dir) {
			if !slices.Contains(known, name) {
				s.say("  %s has noticed: %s", m.Config.Name, name)
				return true
			}
		}
	}
	return false
}

func ended(n *node.Node) bool {
	select {
	case <-n.Done():
		return true
	default:
		return false
	}
}

// outages lists the replicas that are out of service and those that were set aside.
func outages(dir string) (names []string) {
	for _, pattern := range []string{"group-*.out", "group-*.damaged-*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are right
		for _, path := range found {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

// replicaFolders lists the folders of a node's replicas.
func replicaFolders(dir string) (list []string) {
	found, _ := filepath.Glob(filepath.Join(dir, "group-*")) // the pattern is right
	for _, path := range found {
		if !strings.Contains(filepath.Base(path), ".") {
			list = append(list, path)
		}
	}
	return list
}

// holdsFiles reports whether path is a file or a folder that is not empty.
func holdsFiles(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err == nil
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) > 0
}

// applied returns the index up to which each replica of a node has applied its log.
func applied(n *node.Node) map[id.Shard]uint64 {
	list := map[id.Shard]uint64{}
	for _, g := range n.Admin().Own().Groups {
		list[g.Group] = g.Applied
	}
	return list
}

// replace puts a new node in the place of one that has ended.
func (s *attackedWorld) replace(v int) {
	old := s.ids[v]
	s.forfeit(v, time.Now())
	s.cluster.Renew(v)
	s.cluster.Restart(v)
	m := s.cluster.Nodes[v]
	s.ids[v] = m.Node.ID()
	s.say("  %s is replaced by a new node", m.Config.Name)
	s.carryOut(wire.Order{Node: old, State: wire.StateDraining, Heir: m.Node.ID(), Force: true})
	s.settle("the new node has the share of the old", func(st wire.Status) bool { return holds(st, old) == 0 && holds(st, m.Node.ID()) > 0 })
	s.carryOut(wire.Order{Node: old, State: wire.StateRemoved, Force: true})
}
