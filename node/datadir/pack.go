package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// packFile is the file with the identity of the model pack that the node serves with.
	packFile = "pack"
	// packBytesMax is the most bytes that are read of it.
	packBytesMax = 256
	// groupFolders begins the names of the folders with replicas. A directory that is the root of
	// a file system may have other folders, such as lost+found.
	groupFolders = "group-"
)

// Pack returns the identity of the model pack that the node of the data directory served with
// last, or "". Used reports whether it has replicas: without an identity these are of a release
// that kept none.
func Pack(dir string) (identity string, used bool, err error) {
	f, err := os.Open(filepath.Join(dir, packFile))
	if err == nil {
		defer f.Close()
		raw, err := io.ReadAll(io.LimitReader(f, packBytesMax))
		if err != nil {
			return "", true, fmt.Errorf("read %s: %w", packFile, err)
		}
		return strings.TrimSpace(string(raw)), true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("read %s: %w", packFile, err)
	}
	used, err = hasGroups(dir)
	return "", used, err
}

// hasGroups reports whether a data directory has the folder of a replica.
func hasGroups(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read the data directory: %w", err)
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), groupFolders) }), nil
}

// NotePack makes Pack return the identity from now on.
func NotePack(dir, identity string) error {
	noted, _, err := Pack(dir)
	if err != nil || noted == identity {
		return err
	}
	return WriteSynced(filepath.Join(dir, packFile), []byte(identity+"\n"))
}
