package importing

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"facet/client"
)

// linePause is how often a line is written where no bar can be drawn.
const linePause = 5 * time.Second

// screen shows how an import fares: a bar on a terminal, else a line now and then.
// Its methods but copied are for one goroutine.
type screen struct {
	copied atomic.Int64 // photos that are in the object store

	out    *os.File
	total  int
	begun  time.Time
	told   time.Time
	failed atomic.Int64
	bars   *mpb.Progress // nil without a terminal
	bar    *mpb.Bar
}

func newScreen(ctx context.Context, out *os.File, total int) *screen {
	s := &screen{out: out, total: total, begun: time.Now(), told: time.Now()}
	if info, err := out.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return s
	}
	s.bars = mpb.NewWithContext(ctx, mpb.WithOutput(out), mpb.WithWidth(48))
	s.bar = s.bars.AddBar(int64(total),
		mpb.PrependDecorators(decor.CountersNoUnit("%d / %d files ")),
		mpb.AppendDecorators(
			decor.Any(func(st decor.Statistics) string {
				return fmt.Sprintf(" %s  %d failed  ", s.rate(st.Current), s.failed.Load())
			}),
			decor.Any(func(st decor.Statistics) string { return s.left(st.Current) + " left" }),
		))
	return s
}

// show tells the sum so far and a page that is being worked on.
func (s *screen) show(sum Summary, page []client.BulkRecord) {
	done, failed := sum.Registered+sum.Failed, sum.Failed
	for _, r := range page {
		if r.Status == "Processed" {
			done++
		}
		if r.RegisterStatus == "Failed" {
			failed++
		}
	}
	s.failed.Store(int64(failed))
	switch {
	case s.bar != nil:
		s.bar.SetCurrent(int64(done))
	case time.Since(s.told) >= linePause:
		s.told = time.Now()
		fmt.Fprintf(s.out, "%d / %d files (%d copied), %s, %d failed, %s left\n",
			done, s.total, s.copied.Load(), s.rate(int64(done)), failed, s.left(int64(done)))
	}
}

// rate is how many files were done in a second so far.
func (s *screen) rate(done int64) string {
	return fmt.Sprintf("%.1f/s", float64(done)/max(time.Since(s.begun).Seconds(), 0.001))
}

// left is how long the rest takes at the rate so far.
func (s *screen) left(done int64) string {
	if done == 0 {
		return "?"
	}
	each := time.Since(s.begun) / time.Duration(done)
	return (each * time.Duration(int64(s.total)-done)).Round(time.Second).String()
}

// close leaves the bar as it is.
func (s *screen) close() {
	if s.bar == nil {
		return
	}
	s.bar.Abort(false) // nothing happens when it is complete
	s.bars.Wait()
}
