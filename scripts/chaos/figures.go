package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"facet/scripts/chaos/power"
	"facet/scripts/chaos/traffic"
)

const (
	// gapWindow is how long after a fault the gaps in a shard's writes are measured.
	gapWindow = 10 * time.Second
	// searchDeadline is the longest that a search may take, all tries together.
	searchDeadline = 30 * time.Second
)

// Summary describes a run for programs: its settings and its results.
type Summary struct {
	Date     string         `json:"date"`
	Seed     uint64         `json:"seed"`
	Nodes    int            `json:"nodes"`
	Shards   int            `json:"shards"`
	Clients  int            `json:"clients"`
	Seconds  int            `json:"seconds"`
	Faults   map[string]int `json:"faults"`
	Answers  map[string]int `json:"answers"`
	Readings int            `json:"readings"` // operations that were checked
	Merges   Merges         `json:"merges"`
	Classes  []Class        `json:"classes"`
	Problems []string       `json:"problems"`
	// Cuts is the number of power losses, counted for each disk. Lost describes the
	// writes that were not flushed when power failed.
	Cuts int        `json:"cuts,omitempty"`
	Lost power.Loss `json:"lost,omitzero"`
}

// Class describes what clients saw of one kind of fault when it came alone. Times are
// in milliseconds.
type Class struct {
	Fault string `json:"fault"`
	Count int    `json:"count"`
	// A gap is the longest time without an acknowledged write of a shard that the
	// victim led. It is measured in the ten seconds after the fault's start, or until
	// the next fault. Gaps is the number of gaps.
	Gaps   int   `json:"gaps"`
	GapP50 int64 `json:"gapP50"`
	GapMax int64 `json:"gapMax"`
	// Searches is the number of searches that started during the fault. Refused of them
	// got 5xx or 429 at least once. Late of them took longer than the deadline.
	Searches  int   `json:"searches"`
	SearchP50 int64 `json:"searchP50"`
	SearchP99 int64 `json:"searchP99"`
	SearchMax int64 `json:"searchMax"`
	Refused   int   `json:"refused"`
	Late      int   `json:"late"`
}

// classes returns one Class for each kind of fault, and one for the time without faults
// ("calm"). end is when the clients stopped.
func classes(windows []window, acked []traffic.Ack, reads []traffic.Reading, end time.Duration) []Class {
	of := map[string][]window{}
	for _, w := range windows {
		if w.alone {
			of[w.fault] = append(of[w.fault], w)
		}
	}
	var list []Class
	for _, name := range slices.Sorted(maps.Keys(of)) {
		c := Class{Fault: name, Count: len(of[name])}
		var gaps, times []time.Duration
		for _, w := range of[name] {
			for _, shard := range w.led {
				gaps = append(gaps, gapAfter(acked, shard, w.from, watched(w, windows, end)))
			}
			for _, r := range reads {
				if r.Call >= w.from && r.Call < w.to {
					times = append(times, c.read(r))
				}
			}
		}
		c.Gaps, c.GapP50, c.GapMax = len(gaps), rank(gaps, .5), rank(gaps, 1)
		c.Searches, c.SearchP50, c.SearchP99, c.SearchMax = len(times), rank(times, .5), rank(times, .99), rank(times, 1)
		list = append(list, c)
	}
	calm := Class{Fault: "calm"}
	var times []time.Duration
	for _, r := range reads {
		if !slices.ContainsFunc(windows, func(w window) bool { return r.End >= w.from && r.Call < w.to }) {
			times = append(times, calm.read(r))
		}
	}
	calm.Searches, calm.SearchP50, calm.SearchP99, calm.SearchMax = len(times), rank(times, .5), rank(times, .99), rank(times, 1)
	return append(list, calm)
}

// read counts a search and returns how long it took.
func (c *Class) read(r traffic.Reading) time.Duration {
	took := r.End - r.Call
	if r.Refused > 0 {
		c.Refused++
	}
	if took > searchDeadline {
		c.Late++
	}
	return took
}

const (
	// bridgedAfter is how long after a link was cut no request may fail any more.
	bridgedAfter = 3 * time.Second
	// echoTime is how long a fault has effects after its end: connections that it broke are
	// dialled again after a pause.
	echoTime = 10 * time.Second
)

// unbridged returns an error if a request failed that started bridgedAfter or more after the
// link between two nodes was cut, while nothing else was broken, nor shortly before.
func unbridged(windows []window, failed []traffic.Failure) error {
	var first error
	count := 0
	for _, w := range windows {
		if slices.ContainsFunc(windows, func(v window) bool { return v.from < w.from && v.to > w.from-echoTime }) {
			continue
		}
		for _, f := range failed {
			if w.fault == bridgeName && w.alone && f.Began >= w.from+bridgedAfter && f.Began < w.to {
				count++
				first = cmp.Or(first, fmt.Errorf("%s after a link was cut: %w", (f.Began-w.from).Round(time.Millisecond), f.Err))
			}
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("%d requests failed with one link cut for more than %s, the first %w", count, bridgedAfter, first)
}

// gapAfter returns the longest time without an acknowledged write of a shard between
// from and until.
func gapAfter(acked []traffic.Ack, shard int, from, until time.Duration) time.Duration {
	last, longest := from, time.Duration(0)
	for _, a := range acked { // in order of time
		if a.Shard != shard || a.At < from || a.At > until {
			continue
		}
		longest = max(longest, a.At-last)
		last = a.At
	}
	return max(longest, until-last)
}

// watched returns the time until which gaps count for a fault: gapWindow after its
// start, but not past the next fault or the end of the clients' work.
func watched(w window, all []window, end time.Duration) time.Duration {
	until := min(w.from+gapWindow, max(w.from, end))
	for _, next := range all {
		if next.from > w.from {
			until = min(until, next.from)
		}
	}
	return until
}

// rank returns a quantile in milliseconds.
func rank(times []time.Duration, q float64) int64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[int(q*float64(len(times)-1))].Milliseconds()
}

// summary returns the summary of a run.
func summary(t *traffic.Traffic, n *nemesis, s settings, problems []string) Summary {
	slices.SortFunc(t.Acked, func(a, b traffic.Ack) int { return int(a.At - b.At) })
	return Summary{
		Date: time.Now().UTC().Format("2006-01-02"), Seed: s.seed, Nodes: s.nodes, Shards: s.shards, Clients: s.workers,
		Seconds: int(s.length.Seconds()), Faults: n.counts, Answers: t.Counts, Readings: len(t.History),
		Merges: mergesOf(n.windows, traffic.MergesOf(t)), Classes: classes(n.windows, t.Acked, t.Reads, n.end), Problems: problems,
		Cuts: n.cuts, Lost: n.lost,
	}
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func listOf(counts map[string]int) string {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(text, ", ")
}

// print prints the summary for people.
func (s Summary) print(out io.Writer) {
	fmt.Fprintf(out, "faults: %d (%s)\n", total(s.Faults), listOf(s.Faults))
	if s.Cuts > 0 {
		fmt.Fprintf(out, "losses of power, disk by disk: %d; of %d writes that were not flushed %d were kept, %d in part\n", s.Cuts, s.Lost.Writes, s.Lost.Kept, s.Lost.Torn)
	}
	fmt.Fprintf(out, "answers: %d (%s), checked as %d operations on subjects\n", total(s.Answers), listOf(s.Answers), s.Readings)
	fmt.Fprintln(out, s.Merges)
	fmt.Fprintf(out, "%-10s %5s  %5s %8s %8s  %8s %8s %8s %8s %8s %5s\n",
		"alone", "times", "gaps", "p50 ms", "max ms", "searches", "p50 ms", "p99 ms", "max ms", "refused", "late")
	for _, c := range s.Classes {
		fmt.Fprintf(out, "%-10s %5d  %5d %8d %8d  %8d %8d %8d %8d %8d %5d\n",
			c.Fault, c.Count, c.Gaps, c.GapP50, c.GapMax, c.Searches, c.SearchP50, c.SearchP99, c.SearchMax, c.Refused, c.Late)
	}
}

// write writes the summary to a file.
func (s Summary) write(path string) error {
	raw, err := json.MarshalIndent(s, "", " ")
	if err == nil {
		err = os.WriteFile(path, append(raw, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	return nil
}

// tallyHead is the first line of a tally.
const tallyHead = "date,seed,nodes,shards,clients,seconds,faults,answers,operations,kill gap p50 ms,kill gap max ms,problems\n"

// tally appends one line about the run to a file.
func (s Summary) tally(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the tally: %w", err)
	}
	defer f.Close()
	if at, err := f.Seek(0, io.SeekEnd); err == nil && at == 0 {
		fmt.Fprint(f, tallyHead)
	}
	var kill Class
	for _, c := range s.Classes {
		if c.Fault == "kill" {
			kill = c
		}
	}
	if _, err := fmt.Fprintf(f, "%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d\n", s.Date, s.Seed, s.Nodes, s.Shards, s.Clients, s.Seconds,
		total(s.Faults), total(s.Answers), s.Readings, kill.GapP50, kill.GapMax, len(s.Problems)); err != nil {
		return fmt.Errorf("write the tally: %w", err)
	}
	return nil
}
