package serve

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"facet/cmd/facet/config"
	"facet/node"
)

// Reload says how a running node gets changed settings. Its zero value is never.
type Reload struct {
	Hangups <-chan os.Signal // each asks for a reload; nil without any
	Load    func() (config.Settings, error)
}

// Hangups returns a channel with SIGHUP for the rest of the process, or nil if TakesHangup is false.
// From then on SIGHUP no longer ends the process, not even while the node starts or closes.
func Hangups() <-chan os.Signal {
	if !TakesHangup() {
		return nil
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups
}

// TakesHangup reports whether SIGHUP makes a node read its settings again. On a terminal it ends
// the node, because the terminal is gone then.
func TakesHangup() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err == nil {
		tty.Close()
	}
	return err != nil
}

// reloading takes changed settings over while a node runs.
type reloading struct {
	Reload
	level    *slog.LevelVar
	log      *slog.Logger
	settings atomic.Pointer[config.Settings] // the present ones
}

// run serves SIGHUP until ctx ends or the node is done.
func (r *reloading) run(ctx context.Context, n *node.Node) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.Done():
			return
		case <-r.Hangups:
			r.reload(ctx, n.Reconfigure)
		}
	}
}

// reload loads the settings and hands them to the node. With a wrong one the node keeps all that it has.
func (r *reloading) reload(ctx context.Context, reconfigure func(node.Config) error) {
	next, err := r.Load()
	now, changed, waiting := r.settings.Load().Over(next)
	if err == nil {
		err = reconfigure(now.Node())
	}
	if err != nil {
		r.log.ErrorContext(ctx, "the settings were read again, and none is taken over", "err", err)
		return
	}
	r.level.Set(now.LogLevel)
	r.settings.Store(&now)
	r.log.InfoContext(ctx, "the settings were read again", "changed", changed)
	if len(waiting) > 0 {
		r.log.WarnContext(ctx, "settings have changed that the node takes over at its next start only", "settings", waiting)
	}
}
