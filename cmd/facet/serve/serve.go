package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"facet/cmd/facet/config"
	"facet/cmd/facet/printable"
	"facet/cmd/facet/process"
	"facet/internal/recent"
	"facet/node"
	_ "facet/node/bucket/clouds" // s3://, and without the tag slim gs:// and azblob://
)

const (
	// closeTimeout is the longest time for a graceful end: the node hands over its
	// leaderships and answers its requests.
	closeTimeout = 15 * time.Second
	// hangTimeout is how long after closeTimeout the process waits for the node to
	// close. Then it exits anyway.
	hangTimeout = 5 * time.Second
	// recentBytesMax is how much of the log facet debug may read.
	recentBytesMax = 256 << 10
	pidFile        = "node.pid"
)

// Run runs a node until ctx ends and closes it gracefully. At each of reload's signals the node takes
// over what has changed in the settings. If the node has to stop
// by itself, Run returns an error. Its errors are sentences for an operator.
func Run(ctx context.Context, s config.Settings, reload Reload, stderr *os.File) error {
	return runWith(ctx, s, reload, stderr, func(*node.Config) {})
}

// RunWith does the work of Run and lets change edit the complete configuration.
// A benchmark uses it to put its own extractor in front of the face engine.
func RunWith(ctx context.Context, s config.Settings, stderr *os.File, change func(*node.Config)) error {
	return runWith(ctx, s, Reload{}, stderr, change)
}

func runWith(ctx context.Context, s config.Settings, reload Reload, stderr *os.File, change func(*node.Config)) error {
	process.BarDumps()
	lines := recent.New(recentBytesMax)
	level := new(slog.LevelVar)
	level.Set(s.LogLevel)
	log := slog.New(newHandler(io.MultiWriter(printable.Writer{W: stderr}, lines), s, level, process.IsTerminal(stderr)))
	for _, doubt := range s.Doubts {
		log.WarnContext(ctx, "a setting is not read", "why", doubt)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := process.Lock(filepath.Join(s.Dir, pidFile))
	if running, ok := errors.AsType[*process.RunningError](err); ok {
		return fmt.Errorf("a node runs on %s already: process %d", s.Dir, running.PID)
	}
	if err != nil {
		return err
	}
	r := &reloading{Reload: reload, level: level, log: log}
	r.settings.Store(&s)
	withLog := func(cfg *node.Config) {
		cfg.RecentLog, cfg.Settings = lines.Text, func() (map[string]any, error) { return r.settings.Load().Shareable() }
		change(cfg)
	}
	err = run(ctx, r, log, withLog)
	if adopt(s, log, err) {
		err = run(ctx, r, log, withLog)
	}
	return errors.Join(err, lock.Close())
}

func run(ctx context.Context, r *reloading, log *slog.Logger, change func(*node.Config)) error {
	s := r.settings.Load()
	cfg := s.Node()
	cfg.Log = log
	closeFaces, err := openFaces(*s, &cfg)
	if err != nil {
		return err
	}
	defer closeFaces()
	change(&cfg)
	n, err := node.Open(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return nil // a signal stopped it while it started
		}
		return openError(err)
	}
	r.run(ctx, n)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- n.Close(closing) }() // if a disk hangs, it ends with the process
	select {
	case err := <-closed:
		return errors.Join(n.Err(), err)
	case <-time.After(closeTimeout + hangTimeout):
		return errors.Join(n.Err(), errors.New("the node could not be closed in time: its disk may hang"))
	}
}

// openError turns the error of a port in use into a sentence. Other errors already
// are.
func openError(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("a port is taken by another process: %w", err)
	}
	return err
}

// newHandler returns the log's handler: text for people, JSON for machines.
func newHandler(w io.Writer, s config.Settings, level *slog.LevelVar, terminal bool) slog.Handler {
	opts := &slog.HandlerOptions{Level: level}
	if s.LogFormat == config.LogText || s.LogFormat == config.LogAuto && terminal {
		return slog.NewTextHandler(w, opts)
	}
	return slog.NewJSONHandler(w, opts)
}
