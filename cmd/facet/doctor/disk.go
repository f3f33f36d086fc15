package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"facet/cmd/facet/config"
	"facet/node/limits"
)

// The test of a disk: small writes, each flushed, as the logs of the groups make them.
const (
	syncWrites = 100
	syncTime   = 2 * time.Second
	syncBytes  = 4096
	// syncSlow is a latency at which writes are slow, and syncBad one at which leaders change.
	syncSlow, syncBad = 50 * time.Millisecond, 750 * time.Millisecond
)

// unfit says why file systems don't suit a data directory.
var unfit = map[string]string{
	"tmpfs": "its files are gone after a restart of the machine", "ramfs": "its files are gone after a restart of the machine",
	"overlay": "its files are gone with the container: mount a volume", "nfs": "a lost connection stops the node, and locks may not hold",
	"cifs": "a lost connection stops the node, and locks may not hold", "fuse": "it may confirm writes that are not on a disk",
}

// disk checks the file system of the data directory.
func (x *examination) disk(s *config.Settings) {
	dir := existing(s.Dir)
	kind, size := fileSystem(dir)
	if why := unfit[kind]; why != "" {
		x.warn("file system", "put the data directory on a local disk", "%s is on %s: %s", s.Dir, kind, why)
	} else if kind != "" {
		x.ok("file system", "%s is on %s", s.Dir, kind)
	}
	free, reserve, err := limits.Room(dir)
	if s.DiskReserve > 0 {
		reserve = uint64(s.DiskReserve) << 20
	}
	if err == nil && size > reserve {
		used := 1 - (float64(free)-float64(reserve))/float64(size-reserve)
		x.ends = append(x.ends, limit{"the disk", 1 - used, fmt.Sprintf("the disk: %.0f %% used", 100*used)})
	}
	switch {
	case err != nil:
		x.problem("disk", "look at the disk", "%v", err)
	case free < reserve:
		x.problem("disk", "make room outside of the data directory, or lower disk-reserve", "%d MiB are free, less than the %d MiB below which the node refuses registrations", free>>20, reserve>>20)
	case free < 2*reserve:
		x.warn("disk", "make room, or add a node", "%d MiB are free: registrations are refused below %d MiB", free>>20, reserve>>20)
	default:
		x.ok("disk", "%d MiB are free, %d MiB above the reserve", free>>20, (free-reserve)>>20)
	}
	x.flushes(dir)
}

// existing returns dir, or the nearest folder above it that exists.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// flushes measures how long the disk takes to keep a small write.
func (x *examination) flushes(dir string) {
	took, err := measureFlushes(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		x.problem("fsync", "run it as the node's user: sudo -u facet facet doctor …", "this user can't write in %s", dir)
		return
	case err != nil || len(took) == 0:
		x.problem("fsync", "look at the disk", "the disk can't be tested: %v", err)
		return
	}
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	text := fmt.Sprintf("%d writes of 4 KiB: half within %s, 99 %% within %s", len(took), round(p50), round(p99))
	switch {
	case p99 >= syncBad:
		x.problem("fsync", "use a disk of its own, an SSD", "%s: leaders change at every such pause", text)
	case p99 >= syncSlow:
		x.warn("fsync", "use a disk of its own, an SSD: every write of a client waits for it", "%s", text)
	default:
		x.ok("fsync", "%s", text)
	}
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// measureFlushes returns the times of flushed writes to a file in dir, which it removes, ascending.
func measureFlushes(dir string) (took []time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, syncBytes)
	for end := time.Now().Add(syncTime); len(took) < syncWrites && time.Now().Before(end); {
		begin := time.Now()
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := datasync(f); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took, nil
}
