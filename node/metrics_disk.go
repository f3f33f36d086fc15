package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"facet/internal/id"
	"facet/node/metrics"
	"facet/node/replicas"
)

// diskEvery is how often the files are looked at. It is done apart from those who
// ask for metrics: a disk that hangs must not hang them.
const diskEvery = 15 * time.Second

// diskUse is what was seen of the data directory.
type diskUse struct {
	mu         sync.Mutex // guards what follows
	groups     map[id.Shard]groupFiles
	free, size uint64
}

// groupFiles are the sizes of one group's files.
type groupFiles struct {
	log, snapshots, segments int64
	snapshotAt               time.Time // zero without a snapshot
}

// watchDisk looks at the files until ctx ends.
func (n *Node) watchDisk(ctx context.Context) {
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		n.lookAtDisk()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (n *Node) lookAtDisk() {
	groups := map[id.Shard]groupFiles{}
	for _, number := range n.replicas.All() {
		files, err := filesOf(replicas.Folder(n.cfg.Dir, number))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			n.log.Warn("the size of a group's files is not known", "group", number, "err", err)
			continue
		}
		groups[number] = files
	}
	var system unix.Statfs_t
	err := unix.Statfs(n.cfg.Dir, &system)
	if err != nil {
		n.log.Warn("the free space of the data directory is not known", "err", err)
	}
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.disk.groups = groups
	if err == nil {
		block := uint64(system.Bsize)
		n.disk.free, n.disk.size = system.Bavail*block, system.Blocks*block
	}
}

// filesOf adds up a group's folder. Files come and go meanwhile.
func filesOf(dir string) (f groupFiles, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return gone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return gone(err)
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch top, _, _ := strings.Cut(rel, string(os.PathSeparator)); top {
		case "snapshots":
			f.snapshots += info.Size()
			if info.ModTime().After(f.snapshotAt) {
				f.snapshotAt = info.ModTime()
			}
		case "segments":
			f.segments += info.Size()
		default:
			f.log += info.Size()
		}
		return nil
	})
	return f, err
}

// gone is err unless it says that a file is not there any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readDisk gives what was seen last.
func (n *Node) readDisk(to send) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	for number, f := range n.disk.groups {
		label := strconv.Itoa(int(number))
		to(metrics.GroupDisk, float64(f.log), label, "log")
		to(metrics.GroupDisk, float64(f.snapshots), label, "snapshots")
		to(metrics.GroupDisk, float64(f.segments), label, "segments")
		if !f.snapshotAt.IsZero() {
			to(metrics.GroupSnapshotAt, time.Since(f.snapshotAt).Seconds(), label)
		}
	}
	if n.disk.size > 0 {
		to(metrics.DiskFree, float64(n.disk.free))
		to(metrics.DiskSize, float64(n.disk.size))
	}
}
