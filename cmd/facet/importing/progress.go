package importing

import (
	"fmt"
	"io"
	"time"
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
}

func newProgress(out io.Writer, terminal bool, total int) *progress {
	now := time.Now()
	return &progress{out: out, terminal: terminal, total: total, begun: now, written: now}
}

// show takes the outcomes so far, each tick. earlier is how many of them an earlier run
// had done: the rate does not count them.
func (p *progress) show(what string, s Summary, earlier int) {
	now := time.Now()
	p.samples = append(p.samples, sample{now, s.Rows - earlier})
	p.samples = p.samples[max(0, len(p.samples)-rateTicks):]
	if !p.terminal && now.Sub(p.written) < min(max(now.Sub(p.begun)/10, linePauseMin), linePauseMax) {
		return
	}
	p.written = now
	text := fmt.Sprintf("%d of %d %s, %d failed", s.Rows, p.total, what, s.Failed)
	first := p.samples[0]
	if rate := float64(s.Rows-earlier-first.rows) / max(now.Sub(first.at).Seconds(), 1e-3); rate > 0 {
		left := time.Duration(float64(p.total-s.Rows) / rate * float64(time.Second))
		text += fmt.Sprintf(", %.1f a second, %v left", rate, left.Round(time.Second))
	}
	if p.terminal {
		p.shown = true
		fmt.Fprintf(p.out, "\r%s\x1b[K", text)
		return
	}
	fmt.Fprintln(p.out, text)
}

// close removes the line from the terminal.
func (p *progress) close() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
