package importing

import (
	"fmt"
	"io"
	"maps"
	"time"

	"facet/cmd/facet/printable"
)

const (
	// tick is how often the progress is shown and the state is made durable. What a crash
	// loses of the state, the Idempotency-Keys find again.
	tick = time.Second
	// rateTicks is how many ticks the rate is taken over.
	rateTicks = 30
	// The time between two lines that are not on a terminal is a tenth of the time that
	// has passed, within these bounds. So an import of an hour does not fill a log.
	linePauseMin = 2 * time.Second
	linePauseMax = time.Minute
)

// sample is how many rows were done at a time.
type sample struct {
	at   time.Time
	rows int
}

// progress shows how far an import is: one line on a terminal, lines now and then
// elsewhere. It is for one goroutine.
type progress struct {
	out      io.Writer
	terminal bool
	total    int
	begun    time.Time
	written  time.Time
	samples  []sample // the last rateTicks
	shown    bool     // a line is on the terminal
	// said has when a reason was last written elsewhere, in the last linePauseMax.
	said map[string]time.Time
}

func newProgress(out io.Writer, terminal bool, total int) *progress {
	now := time.Now()
	return &progress{out: out, terminal: terminal, total: total, begun: now, written: now, said: map[string]time.Time{}}
}

// show takes the outcomes so far, each tick. before is how many of them were known before:
// the rate does not count them.
func (p *progress) show(what string, s Summary, before int, now stall) {
	at := time.Now()
	p.samples = append(p.samples, sample{at, s.Rows - before})
	p.samples = p.samples[max(0, len(p.samples)-rateTicks):]
	if !p.terminal && !p.due(at, now.why) {
		return
	}
	p.written = at
	text := fmt.Sprintf("%d of %d %s", s.Rows, p.total, what)
	if s.AlreadyIn > 0 {
		text += fmt.Sprintf(" (%d were in already)", s.AlreadyIn)
	}
	text += fmt.Sprintf(", %d failed", s.Failed)
	first := p.samples[0]
	rate := float64(s.Rows-before-first.rows) / max(at.Sub(first.at).Seconds(), 1e-3)
	switch {
	case now.why != "":
		text += fmt.Sprintf(", waiting %v: %s", now.lasted.Round(time.Second), now.why)
	case rate > 0:
		left := time.Duration(float64(p.total-s.Rows) / rate * float64(time.Second))
		text += fmt.Sprintf(", %.1f a second, %v left", rate, left.Round(time.Second))
	}
	if p.terminal {
		p.shown = true
		fmt.Fprintf(printable.Raw(p.out), "\r\x1b[?7l%s\x1b[K\x1b[?7h", printable.Text(text)) // a long line ends at the terminal's edge
		return
	}
	fmt.Fprintln(p.out, text)
}

// due reports whether a line is to be written that is not on a terminal. One with a reason
// is, unless the reason was written in the last linePauseMax.
func (p *progress) due(at time.Time, why string) bool {
	if why == "" {
		return at.Sub(p.written) >= min(max(at.Sub(p.begun)/10, linePauseMin), linePauseMax)
	}
	maps.DeleteFunc(p.said, func(_ string, said time.Time) bool { return at.Sub(said) >= linePauseMax })
	if _, said := p.said[why]; said {
		return false
	}
	p.said[why] = at
	return true
}

// close removes the line from the terminal.
func (p *progress) close() {
	if p.shown {
		fmt.Fprint(printable.Raw(p.out), "\r\x1b[K")
	}
}
