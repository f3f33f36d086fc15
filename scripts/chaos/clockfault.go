package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"facet/node/wire"
	"facet/scripts/chaos/traffic"
)

const (
	// wrongBy is how far a node's clock is off. It is longer than the retention of the clients'
	// gallery and than the time that their photos have.
	wrongBy = 365 * 24 * time.Hour
	// clockWarning is a part of the warning about a node whose clock agrees with no majority.
	clockWarning = "no event expires on the shards that this node leads"
	// recoverTime is how long after the end of a fault an event that is due may stay.
	recoverTime = 15 * time.Second
)

// clockFile returns the file by which a node of the harness learns how far its clock is off.
func (p *process) clockFile() string { return p.log + ".clock" }

// wrongTime sets the clock of a node a year ahead, or back, and waits until the node warns of it.
// Nothing may expire by that clock.
var wrongTime = fault{"wrong time", nothing, false, true, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
	off := wrongBy
	if n.random.IntN(3) == 0 {
		off = -off
	}
	if err := os.WriteFile(p.clockFile(), []byte(off.String()), 0o600); err != nil {
		return nil, fmt.Errorf("set the clock of %s: %w", p.name, err)
	}
	warned := func(want bool) func(wire.Status) bool {
		return func(s wire.Status) bool {
			return want == slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, clockWarning) })
		}
	}
	err := n.until(p.name+" warns of its clock", warned(true))
	if err == nil {
		n.say("  %s warns of its clock", p.name)
	}
	return func() error {
		if err := os.Remove(p.clockFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set the clock of %s right: %w", p.name, err)
		}
		return n.until("no node warns of its clock", warned(false))
	}, err
}}

// excuse lets the events of a history that were due during a fault stay until a while after it. It
// returns how many were due without a fault, so within traffic.ExpiredWithin, and how many with one.
func (n *nemesis) excuse(history []traffic.Operation) (strict, excused int) {
	windows := slices.Clone(n.windows)
	slices.SortFunc(windows, func(a, b window) int { return int(a.from - b.from) })
	for i := range history {
		o := &history[i]
		if !o.Expiry() {
			continue
		}
		before := o.End
		for _, w := range windows {
			if w.from <= o.End && w.to+recoverTime >= o.Call {
				o.End = max(o.End, w.to+recoverTime)
			}
		}
		if o.End == before {
			strict++
		} else {
			excused++
		}
	}
	return strict, excused
}
