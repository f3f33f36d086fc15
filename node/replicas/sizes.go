package replicas

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"facet/internal/id"
	"facet/node/loop"
	"facet/shard/segment"
)

// sizesInterval is how often the files are measured. A scrape of the metrics reads the last
// result, so a disk that hangs does not hang it.
const sizesInterval = 15 * time.Second

// Files has the sizes in bytes of one group's files.
type Files struct {
	Log, Snapshots, Segments, Codes int64
	SnapshotAt                      time.Time // zero without a snapshot
}

// Sizes measures the files of a node's groups and their file system. It is safe for
// concurrent use.
type Sizes struct {
	*loop.Loop
	replicas *Replicas
	log      *slog.Logger

	mu         sync.Mutex // guards groups, free and size
	groups     map[id.Shard]Files
	free, size uint64
}

// NewSizes returns a Sizes that has measured nothing; Run measures.
func NewSizes(r *Replicas) *Sizes {
	return &Sizes{Loop: loop.New("sizes"), replicas: r, log: r.cfg.Log, groups: map[id.Shard]Files{}}
}

// Run measures the files until ctx ends.
func (s *Sizes) Run(ctx context.Context) {
	s.Every(ctx, sizesInterval, func(context.Context) error { return s.step() })
}

// Groups returns the last measurement of each group's files.
func (s *Sizes) Groups() map[id.Shard]Files {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.groups)
}

// Disk returns the free bytes and the size of the data directory's file system; both are
// 0 before the first measurement.
func (s *Sizes) Disk() (free, size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free, s.size
}

func (s *Sizes) step() (failed error) {
	groups := map[id.Shard]Files{}
	for _, number := range s.replicas.All() {
		files, err := filesOf(Folder(s.replicas.cfg.Dir, number))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("the size of a group's files is not known", "group", number, "err", err)
			failed = err
			continue
		}
		groups[number] = files
	}
	var system unix.Statfs_t
	err := unix.Statfs(s.replicas.cfg.Dir, &system)
	if err != nil {
		s.log.Warn("the free space of the data directory is not known", "err", err)
		failed = err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = groups
	if err == nil {
		block := uint64(system.Bsize)
		s.free, s.size = system.Bavail*block, system.Blocks*block
	}
	return failed
}

// filesOf adds up the files of a group's folder. A file that disappears meanwhile counts
// nothing.
func filesOf(dir string) (f Files, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return unlessGone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return unlessGone(err)
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch top, name, _ := strings.Cut(rel, string(os.PathSeparator)); {
		case top == "snapshots":
			f.Snapshots += info.Size()
			if info.ModTime().After(f.SnapshotAt) {
				f.SnapshotAt = info.ModTime()
			}
		case segment.IsCompanion(name):
			f.Codes += info.Size()
		case top == "segments":
			f.Segments += info.Size()
		default:
			f.Log += info.Size()
		}
		return nil
	})
	return f, err
}

// unlessGone returns nil for the error of a file that disappeared, else err.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
