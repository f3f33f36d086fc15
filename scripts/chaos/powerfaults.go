package main

import "time"

// powerFaults are losses of power. Writes that were not flushed are lost, kept or torn.
var powerFaults = []fault{
	{"power", disks, true, false, 4 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		cut(n.random, p)
		return func() error { return n.repower(p) }, nil
	}},
	{"power all", disks, true, true, 2 * time.Second, func(n *nemesis, _ *process) (func() error, error) {
		nodes := n.cluster.members()
		cut(n.random, nodes...)
		return func() error { return n.repower(nodes...) }, nil
	}},
}

// repower starts nodes whose power was cut, each with the bytes that its disk kept.
func (n *nemesis) repower(nodes ...*process) error {
	for _, p := range nodes {
		loss, err := p.disk.restore(n.random)
		if err != nil {
			return err
		}
		n.lost.Writes += loss.Writes
		n.lost.Kept += loss.Kept
		n.lost.Torn += loss.Torn
		n.cuts++
		n.say("  %s: of %d writes that were not flushed %d are kept, %d in part", p.Name, loss.Writes, loss.Kept, loss.Torn)
		if err := n.cluster.start(p); err != nil {
			return err
		}
	}
	return nil
}
