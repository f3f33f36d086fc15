package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"facet/raftfsm/metafsm"
)

const (
	// levelFile in the data directory has the cluster's level once it is more than 1:
	// older software must stop before it opens the rest.
	levelFile = "level"
	// levelBytesMax bounds what is read of it.
	levelBytesMax = 32
)

// CheckLevel refuses a data directory with forms that this software does not know.
func CheckLevel(dir string, known uint32) error {
	noted, err := readLevel(dir)
	if err == nil && noted > known {
		err = TooNew(noted, known)
	}
	return err
}

// readLevel returns the level that a data directory is known to have.
func readLevel(dir string) (uint32, error) {
	f, err := os.Open(filepath.Join(dir, levelFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the level of the data directory: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, levelBytesMax))
	if err != nil {
		return 0, fmt.Errorf("read the level of the data directory: %w", err)
	}
	noted, err := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the level of the data directory is no number: %q", raw)
	}
	return uint32(noted), nil
}

// NoteLevel keeps the cluster's level in the data directory, and gives the one that is
// kept there.
func NoteLevel(dir string, level uint32) (uint32, error) {
	noted, err := readLevel(dir)
	if err != nil || level <= noted {
		return noted, err
	}
	return level, WriteSynced(filepath.Join(dir, levelFile), strconv.AppendUint(nil, uint64(level), 10))
}

// TooNew says that software that knows one level meets a higher one.
func TooNew(level, known uint32) error {
	return fmt.Errorf("%w: level %d, and this node knows %d: run a version that is at least as new as the other nodes", metafsm.ErrLevel, level, known)
}
