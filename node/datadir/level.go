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
	// levelFile is the file with the cluster's level. A node writes it before any group, so that
	// older software stops at it before it opens other files. Releases before 0.4.0 had none at
	// level 1.
	levelFile = "level"
	// levelBytesMax is the most bytes that are read of it.
	levelBytesMax = 32
)

// CheckLevel returns an error if the data directory has a level above known or below
// metafsm.LevelFirst. A directory without groups may have none.
func CheckLevel(dir string, known uint32) error {
	noted, err := readLevel(dir)
	switch {
	case err != nil:
		return err
	case noted > known:
		return TooNew(noted, known)
	case noted >= metafsm.LevelFirst:
		return nil
	}
	used, err := hasGroups(dir)
	if err == nil && (noted > 0 || used) {
		err = metafsm.OldLevel("the data directory", noted)
	}
	return err
}

// readLevel returns the level in the data directory's file, 0 without one.
func readLevel(dir string) (uint32, error) {
	f, err := os.Open(filepath.Join(dir, levelFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
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
