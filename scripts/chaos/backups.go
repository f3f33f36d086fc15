package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"facet/scripts/chaos/traffic"
)

const (
	// backupsMax is the most backups of a run. backupRest is the longest pause between
	// two backups.
	backupsMax = 12
	backupRest = 10 * time.Second
	// backupTry is the longest that one call for a backup or a restoration may take.
	backupTry = 30 * time.Second
	// restoreKills is the most kills of the node that restores a backup. Each kill
	// comes within restoreLives after a restoration has started.
	restoreKills = 3
	restoreLives = 350 * time.Millisecond
	// restoredFirst is the distance between the node numbers of two restored clusters.
	restoredFirst = 100
)

// backup describes one backup that was made during an attack.
type backup struct {
	name     string
	from, to time.Duration // since the beginning
	calls    int           // calls until one succeeded
}

// copyist makes backups of a cluster under attack, and restores them into new clusters.
type copyist struct {
	*cluster
	own    *client
	t      *traffic.Traffic
	random *rand.Rand
	say    func(format string, args ...any)
	url    string // empty: no backups
	made   []backup
	kills  int // kills of restoring nodes
	tried  int // restored clusters so far
}

// openCopyist returns the copyist of a run. It creates the folder for backups if the
// settings ask for backups.
func (c *cluster) openCopyist(own *client, t *traffic.Traffic, n *nemesis, s settings) (*copyist, error) {
	b := &copyist{cluster: c, own: own, t: t, random: rand.New(rand.NewPCG(s.seed, 3)), say: n.say}
	if !s.backups {
		return b, nil
	}
	dir := filepath.Join(c.Dir, "backups")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for backups: %w", err)
	}
	b.url = "file://" + dir
	return b, nil
}

// run makes one backup after the other until stop ends. When give ends, run gives up
// the backup that is not finished.
func (b *copyist) run(stop, give context.Context) error {
	for b.url != "" && stop.Err() == nil && len(b.made) < backupsMax {
		pause(stop, time.Duration(b.random.Int64N(int64(backupRest))))
		one := backup{name: fmt.Sprintf("b%02d", len(b.made)+1), from: b.t.Now()}
		for failed := errors.New("not tried"); failed != nil; {
			if give.Err() != nil {
				return fmt.Errorf("backup %s is not made: %w", one.name, failed)
			}
			ctx, cancel := context.WithTimeout(give, backupTry)
			_, failed = b.facet(ctx, "backup", "--to", b.url, "--name", one.name)
			cancel()
			one.calls++
			if failed != nil {
				pause(give, lookPause)
			}
		}
		one.to = b.t.Now()
		b.made = append(b.made, one)
		b.say("backup %s is made, with %d calls, in %s", one.name, one.calls, (one.to - one.from).Round(time.Millisecond))
	}
	return nil
}

// check restores backups into clusters of one node each, and compares their content
// with what clients saw. The nodes of the attacked cluster no longer run then.
func (b *copyist) check(ctx context.Context) error {
	if len(b.made) == 0 {
		return errors.New("there is no backup to restore")
	}
	last := len(b.made) - 1
	newest, err := b.restored(ctx, b.made[last])
	if err == nil {
		err = b.t.Whole(newest)
	}
	for i := 0; err == nil && i < last; i += max(1, last/2) { // the first, and one in the middle
		var all, left traffic.Copy
		all, err = b.restored(ctx, b.made[i], "--with-erased")
		if err == nil {
			err = b.t.Whole(all)
		}
		if err == nil {
			left, err = b.restored(ctx, b.made[i])
		}
		if err == nil {
			err = traffic.Erased(left, all, newest)
		}
	}
	b.say("%d backups restored, while their nodes were killed %d times", b.tried, b.kills)
	return err
}

// restored restores a backup into a new cluster, kills the cluster's node meanwhile,
// and returns the restored content.
func (b *copyist) restored(ctx context.Context, from backup, args ...string) (c traffic.Copy, err error) {
	b.tried++
	fresh := &cluster{Cluster: b.Cluster, disks: b.disks, lan: b.lan, first: restoredFirst * b.tried}
	fresh.Dir, fresh.Founders = filepath.Join(b.Dir, fmt.Sprintf("restored-%d-%s", b.tried, from.name)), 1
	if err := os.MkdirAll(fresh.Dir, 0o700); err != nil {
		return c, fmt.Errorf("make a folder for a restored cluster: %w", err)
	}
	p, err := fresh.newProcess()
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, fresh.discard(p)) }()
	if err = fresh.start(p); err != nil {
		return c, err
	}
	if err := fresh.waitWhole(ctx); err != nil {
		return c, err
	}
	if err := b.restore(ctx, fresh, p, append([]string{"restore", "--from", b.url, "--name", from.name}, args...)); err != nil {
		return c, err
	}
	return b.t.ReadCopy(ctx, func(apiKey string) traffic.Sender {
		of := *b.own
		of.cluster, of.APIKey = fresh, apiKey
		return &of
	}, from.from, from.to)
}

// restore repeats the order until it succeeds. It kills the node up to restoreKills
// times meanwhile.
func (b *copyist) restore(ctx context.Context, fresh *cluster, p *process, order []string) error {
	for kills := b.random.IntN(restoreKills + 1); ; kills-- {
		try, cancel := context.WithTimeout(ctx, backupTry)
		done := make(chan error, 1)
		go func() {
			_, err := fresh.facet(try, order...)
			done <- err
		}()
		var err error
		if kills > 0 {
			pause(ctx, time.Duration(b.random.Int64N(int64(restoreLives))))
			err = b.crash(fresh, p)
			b.kills++
		}
		failed := <-done
		cancel()
		if err == nil && ctx.Err() != nil {
			err = fmt.Errorf("restore a backup: %w", failed)
		}
		if err == nil {
			err = fresh.waitWhole(ctx)
		}
		if err != nil || failed == nil {
			return err
		}
		b.say("  the restoration is tried again: %.200v", failed)
	}
}

// crash kills a node and starts it again. If the node has a disk of its own, the disk
// loses power too.
func (b *copyist) crash(fresh *cluster, p *process) error {
	if p.disk == nil {
		p.Signal(syscall.SIGKILL)
		return fresh.start(p)
	}
	cut(b.random, p)
	if _, err := p.disk.restore(b.random); err != nil {
		return err
	}
	return fresh.start(p)
}
