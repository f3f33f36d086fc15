package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Salvage links the sound files of the folder from into the folder to, which it makes. Links take
// no space. A file is sound if its hash is its name; damaged files stay where they are. Nobody may
// write to either folder meanwhile. Without the folder from it does nothing.
func Salvage(from, to string) (files int, err error) {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("salvage segments: %w", err)
	}
	if err := makeFolder(to); err != nil {
		return 0, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), fileSuffix)
		if !ok || !e.Type().IsRegular() || !sound(filepath.Join(from, e.Name()), name) {
			continue
		}
		if err := os.Link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
			return files, fmt.Errorf("salvage segments: %w", err)
		}
		files++
	}
	return files, osDisk(to).sync()
}

// sound reports whether a file can be read and its hash is its name.
func sound(path, name string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, fileBytesMax+1))
	return err == nil && n <= fileBytesMax && hex.EncodeToString(sum.Sum(nil)) == name
}
