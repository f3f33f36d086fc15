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
	// levelFile is the file with the cluster's level once that is above 1. Older software
	// stops at it before it opens other files.
	levelFile = "level"
	// levelBytesMax is the most bytes that are read of it.
	levelBytesMax = 32
)

// CheckLevel returns an error if the data directory has a level above known.
func CheckLevel(dir string, known uint32) error {
	noted, err := readLevel(dir)
	if err == nil && noted > known {
		err = TooNew(noted, known)
	}
	return err
}

// readLevel returns the level in the data directory's file, 1 without one.
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

// NoteLevel records the cluster's level in the data directory unless a higher one is there.
// It returns the recorded level.
func NoteLevel(dir string, level uint32) (uint32, error) {
	noted, err := readLevel(dir)
	if err != nil || level <= noted {
		return noted, err
	}
	return level, WriteSynced(filepath.Join(dir, levelFile), strconv.AppendUint(nil, uint64(level), 10))
}

// TooNew returns the error of software that knows the level known and meets a higher one.
func TooNew(level, known uint32) error {
	return fmt.Errorf("%w: level %d, and this node knows %d: run a version that is at least as new as the other nodes", metafsm.ErrLevel, level, known)
}
