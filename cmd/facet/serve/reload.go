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
	load     Loader
	level    *slog.LevelVar
	log      *slog.Logger
	settings atomic.Pointer[config.Settings] // the present ones
}

// run serves SIGHUP until ctx ends or the node is done.
func (r *reloading) run(ctx context.Context, n *node.Node) {
	hangups := make(chan os.Signal, 1)
	if r.load != nil && TakesHangup() {
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.Done():
			return
		case <-hangups:
			r.reload(ctx, n.Reconfigure)
		}
	}
}

// reload loads the settings and hands them to the node. With a wrong one the node keeps all that it has.
func (r *reloading) reload(ctx context.Context, reconfigure func(node.Config) error) {
	next, err := r.load()
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
