package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
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

// clockRules are the rules of the alert FacetClockSkew, by their expressions in
// deploy/prometheus/alerts.yml. Prometheus takes a value's timestamp when it asks for it.
var clockRules = []struct {
	expr, metric string
	fires        func(value float64, asked time.Time) bool
}{
	{"abs(facet_clock_seconds - timestamp(facet_clock_seconds)) > 2", "facet_clock_seconds", func(value float64, asked time.Time) bool {
		return math.Abs(value-float64(asked.UnixMilli())/1000) > 2
	}},
	{"facet_clock_agrees == 0", "facet_clock_agrees", func(value float64, _ time.Time) bool { return value == 0 }},
}

// clockAlerts waits until both rules of FacetClockSkew fire for a node, or until none does.
func (n *nemesis) clockAlerts(p *process, want bool) error {
	for _, rule := range clockRules {
		for late := time.Now().Add(recoverTime); ; time.Sleep(lookPause) {
			asked := time.Now()
			value, err := n.gauge(p, rule.metric)
			if err == nil && rule.fires(value, asked) == want {
				break
			}
			if time.Now().After(late) {
				return errors.Join(fmt.Errorf("%s: %q should be %v; the value is %f", p.Name, rule.expr, want, value), err)
			}
		}
	}
	return nil
}

// clockFile returns the file by which a node of the harness learns how far its clock is off.
func (p *process) clockFile() string { return p.Log + ".clock" }

// wrongTime sets the clock of a node a year ahead, or back, and waits until the node warns of it
// and its metrics would make FacetClockSkew fire.
// Nothing may expire by that clock.
var wrongTime = fault{"wrong time", nothing, false, true, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
	off := wrongBy
	if n.random.IntN(3) == 0 {
		off = -off
	}
	if err := os.WriteFile(p.clockFile(), []byte(off.String()), 0o600); err != nil {
		return nil, fmt.Errorf("set the clock of %s: %w", p.Name, err)
	}
	warned := func(want bool) func(wire.Status) bool {
		return func(s wire.Status) bool {
			return want == slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, clockWarning) })
		}
	}
	err := n.until(p.Name+" warns of its clock", warned(true))
	if err == nil {
		err = n.clockAlerts(p, true)
	}
	if err == nil {
		n.say("  %s warns of its clock, and FacetClockSkew would fire", p.Name)
	}
	return func() error {
		if err := os.Remove(p.clockFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set the clock of %s right: %w", p.Name, err)
		}
		if err := n.until("no node warns of its clock", warned(false)); err != nil {
			return err
		}
		return n.clockAlerts(p, false)
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
