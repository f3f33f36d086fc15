package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"facet/cmd/facet/authority"
	"facet/internal/id"
	"facet/node/wire"
	"facet/scripts/chaos/lan"
)

const (
	// noticeTime is the longest until a node notices what it has lost.
	noticeTime = 30 * time.Second
	// toldTime is the time after which a node's peers know what it has acknowledged.
	toldTime = 2500 * time.Millisecond
	// writeTime is the longest time that a node works before it is rolled back.
	writeTime = 6 * time.Second
)

// replicaParts are the parts of a replica's folder. The empty one is the whole folder.
var replicaParts = []string{"snapshots", "raft.db", "segments", ""}

// lossFaults take away what a node has written, or run a node twice. Each begins when the
// cluster is whole: only a minority of lost replicas can be survived.
var lossFaults = []fault{
	{"lose state", orders, true, true, 4 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		if _, err := n.whole(); err != nil {
			return nil, err
		}
		p.Signal(syscall.SIGKILL)
		err := n.lose(p)
		if err != nil {
			return nil, err
		}
		return n.startLost(p, time.Now(), true)
	}},
	{"roll back", orders, true, true, 4 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		if _, err := n.whole(); err != nil {
			return nil, err
		}
		since, old := time.Now(), p.Data+".old"
		p.Signal(syscall.SIGKILL)
		if err := errors.Join(command("cp", "-a", p.Data, old), n.cluster.start(p)); err != nil {
			return nil, err
		}
		before, err := n.whole()
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(n.random.Int64N(int64(writeTime))))
		after, err := n.settled()
		if err != nil {
			return nil, err
		}
		time.Sleep(toldTime)
		p.Signal(syscall.SIGKILL)
		if err := refill(p.Data, old); err != nil {
			return nil, err
		}
		return n.startLost(p, since, hasGrown(p.ID, before, after))
	}},
	{"duplicate", orders, true, true, 4 * time.Second, (*nemesis).duplicate},
}

// duplicate runs a copy of a node in one of three ways. A copy ends while the node is heard.
// A copy of a node that was cut off takes over: if it is older than the node's last start it
// ends, and else the node ends when it is heard again.
func (n *nemesis) duplicate(p *process) (undo func() error, err error) {
	if _, err := n.whole(); err != nil {
		return nil, err
	}
	p.Signal(syscall.SIGKILL)
	twin, err := n.cluster.twin(p)
	if err != nil {
		return nil, err
	}
	cut := func() (heal func() error) { return n.links(p, lan.Link{Cut: true}, lan.Link{Cut: true}) }
	ends := func() error {
		err := n.cluster.start(twin)
		if err == nil && !twin.EndsWithin(noticeTime) {
			err = fmt.Errorf("%s runs, and so does its copy: see %s", p.Name, twin.Log)
		}
		twin.Signal(syscall.SIGKILL)
		return errors.Join(err, os.RemoveAll(twin.Data))
	}
	way := n.random.IntN(3)
	if way == 2 {
		n.say("  %s is cut off, and its copy starts", p.Name)
		began := time.Now()
		heal := cut()
		err := errors.Join(n.cluster.start(p), n.cluster.start(twin))
		return func() error {
			defer n.forfeit(p, began)
			return n.takenOver(p, twin, heal)
		}, err
	}
	if err := n.cluster.start(p); err != nil {
		return nil, err
	}
	if _, err := n.whole(); err != nil {
		return nil, err
	}
	if way == 0 {
		return func() error { return nil }, ends()
	}
	time.Sleep(toldTime)
	n.say("  %s is cut off, and its older copy starts", p.Name)
	heal := cut()
	err = ends()
	time.Sleep(toldTime) // while the copy counts as heard, the node would end for it
	return heal, err
}

// twin returns a node with a copy of p's data directory, on a host of its own. It is not one
// of the cluster's nodes.
func (c *cluster) twin(p *process) (*process, error) {
	twin := &process{number: freeHost(c.members())}
	twin.Name, twin.ID, twin.Ports, twin.Data, twin.Log = p.Name+"-copy", p.ID, p.Ports, p.Data+"-copy", p.Log+".copy"
	twin.Host = lan.Address(twin.number)
	if err := command("cp", "-a", p.Data, twin.Data); err != nil {
		return nil, err
	}
	certificates := c.Certs.Node(twin.Name)
	if err := os.RemoveAll(certificates); err != nil { // of another host
		return nil, err
	}
	if _, err := c.Certs.Ensure(authority.NodeCertificates{Name: twin.Name, ID: twin.ID, Hosts: []string{twin.Host}}); err != nil {
		return nil, err
	}
	twin.Args = slices.Concat(p.Args, twin.Places(), []string{"--certificates", certificates})
	return twin, nil
}

// takenOver waits until the copy of a node that is cut off has taken over, heals the links
// and waits until the node ends. The node then goes on with the copy's files.
func (n *nemesis) takenOver(p, twin *process, heal func() error) error {
	others := func() []*process {
		return slices.DeleteFunc(slices.Clone(n.cluster.members()), func(m *process) bool { return m == p })
	}
	err := n.untilSeenBy(others, "the copy has taken over", func(s wire.Status) bool {
		return slices.ContainsFunc(s.Nodes, func(m wire.Member) bool {
			return m.ID == p.ID && m.Answers && strings.HasPrefix(m.Peer, twin.Host+":")
		})
	})
	err = errors.Join(err, heal())
	if err == nil && !p.EndsWithin(noticeTime) {
		err = fmt.Errorf("the copy of %s has taken over, and the node goes on: see %s", p.Name, p.Log)
	}
	p.Signal(syscall.SIGKILL)
	twin.Signal(syscall.SIGTERM)
	if err != nil {
		return err
	}
	if err := errors.Join(refill(p.Data, twin.Data), n.cluster.start(p)); err != nil {
		return err
	}
	_, err = n.whole()
	time.Sleep(toldTime) // until then the directory says that it belongs to the copy's address
	return err
}

// refill replaces the contents of a data directory by those of another one. The directory
// stays the same one: a new one would be a copy.
func refill(dir, from string) error {
	old, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return errors.Join(err, command("cp", "-a", from+"/.", dir), os.RemoveAll(from))
}

// whole waits until the cluster is whole. Nodes that were damaged have then been rebuilt, and
// those that ended because of it replaced.
func (n *nemesis) whole() (s wire.Status, err error) {
	for ended := true; ended && err == nil; {
		if err := n.census(); err != nil {
			return s, err
		}
		err = n.until("the cluster is whole", func(now wire.Status) bool {
			s, ended = now, slices.ContainsFunc(n.cluster.members(), (*process).Ended)
			return ended || len(now.Nodes) == len(n.cluster.members()) && len(wounds(now.Warnings)) == 0
		})
	}
	for _, p := range n.cluster.members() {
		p.damaged.Store(false)
	}
	return s, err
}

// lose removes a part of one of a node's replicas, or all replicas.
func (n *nemesis) lose(p *process) error {
	folders, err := filepath.Glob(filepath.Join(p.Data, "group-*"))
	if err != nil {
		return err
	}
	folders = slices.DeleteFunc(folders, func(path string) bool { return strings.Contains(filepath.Base(path), ".") })
	var lost []string
	for _, folder := range folders {
		for _, part := range replicaParts {
			path := filepath.Join(folder, part)
			entries, err := os.ReadDir(path)
			if part == "raft.db" || err == nil && len(entries) > 0 {
				lost = append(lost, path)
			}
		}
	}
	if len(lost) == 0 {
		return fmt.Errorf("%s has no replica", p.Name)
	}
	lost = []string{lost[n.random.IntN(len(lost))]}
	if n.random.IntN(8) == 0 {
		lost = folders
	}
	for _, path := range lost {
		n.say("  %s loses %s", p.Name, strings.TrimPrefix(path, p.Data))
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// startLost starts a node that has lost what it wrote since a time. Half of the time another node is down
// meanwhile, so that the two others could form a majority. The node must notice what it has
// lost, if that is noticeable: it takes the replica out of service, or ends and is replaced.
func (n *nemesis) startLost(p *process, since time.Time, noticeable bool) (undo func() error, err error) {
	n.forfeit(p, since)
	other := n.beside(p)
	down := n.random.IntN(2) == 0
	if down {
		n.say("  %s is down meanwhile", other.Name)
		other.Signal(syscall.SIGKILL)
	}
	known := outages(p.Data)
	p.damaged.Store(true)
	if err := n.cluster.start(p); err != nil {
		return nil, err
	}
	// With another node down, a replica may have to wait for that node before it learns
	// what it has lost.
	within := noticeTime
	if down || !noticeable {
		within = toldTime
	}
	noticed := notices(p, known, within)
	return func() error {
		var err error
		if down {
			err = n.cluster.start(other)
		}
		if err == nil && !noticed && noticeable && !notices(p, known, noticeTime) {
			err = fmt.Errorf("%s has not noticed what it has lost: see %s", p.Name, p.Log)
		}
		p.EndsWithin(toldTime) // meta may notice after a shard; census replaces the node
		return err
	}, nil
}

// notices waits until a node has ended or has a new replica out of service.
func notices(p *process, known []string, within time.Duration) bool {
	for began := time.Now(); time.Since(began) < within; time.Sleep(10 * time.Millisecond) {
		if p.Ended() || slices.ContainsFunc(outages(p.Data), func(name string) bool { return !slices.Contains(known, name) }) {
			return true
		}
	}
	return false
}

// outages lists the replicas of a data directory that are out of service or set aside.
func outages(dir string) (names []string) {
	for _, pattern := range []string{"group-*.out", "group-*.damaged-*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are right
		names = append(names, found...)
	}
	return names
}

// hasGrown reports whether a replica of a node has applied more entries in the later status.
func hasGrown(who id.Node, before, after wire.Status) bool {
	applied := func(s wire.Status) map[id.Shard]uint64 {
		of := map[id.Shard]uint64{}
		for _, m := range s.Nodes {
			for _, g := range m.Groups {
				if m.ID == who {
					of[g.Group] = g.Applied
				}
			}
		}
		return of
	}
	was := applied(before)
	for group, index := range applied(after) {
		if index > was[group] {
			return true
		}
	}
	return false
}
