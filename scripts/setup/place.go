package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// errHash is returned for bytes that differ from the lock file's size or hash.
var errHash = errors.New("SHA-256 or size is not that of assets/lock.json")

// present reports whether the file exists with the right bytes.
func present(assets string, r result) (bool, error) {
	name := filepath.Join(assets, filepath.FromSlash(r.To))
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && info.Size() != r.Size) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sum, err := hashFile(name, sha256.New())
	if err != nil {
		return false, err
	}
	return hex.EncodeToString(sum) == r.SHA256, nil
}

// verifyArchive compares a fetched archive with the lock file. The client has
// done so too, but is not trusted.
func verifyArchive(name string, p *pkg) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	sum, err := hashFile(name, sha256.New())
	if err != nil {
		return err
	}
	if info.Size() != p.Size || hex.EncodeToString(sum) != p.SHA256 {
		return fmt.Errorf("%w: %s has %d bytes and %x", errHash, p, info.Size(), sum)
	}
	if p.Integrity == "" {
		return nil
	}
	if sum, err = hashFile(name, sha512.New()); err != nil {
		return err
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum); got != p.Integrity {
		return fmt.Errorf("%w: %s has integrity %s", errHash, p, got)
	}
	return nil
}

func hashFile(name string, h hash.Hash) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// place writes the bytes of r to the result's path, by temporary file and rename,
// if size and SHA-256 are right. tmp must be on the same file system.
func place(assets, tmp string, want result, r io.Reader) (err error) {
	f, err := os.CreateTemp(tmp, "place-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(r, want.Size+1))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", want.To, err)
	}
	if sum := h.Sum(nil); n != want.Size || hex.EncodeToString(sum) != want.SHA256 {
		return fmt.Errorf("%w: %s has %x", errHash, want.To, sum)
	}
	return rename(f.Name(), filepath.Join(assets, filepath.FromSlash(want.To)))
}

// placeText writes a generated text unless the file already has it. It reports
// whether it wrote.
func placeText(assets, tmp, to string, data []byte) (bool, error) {
	old, err := os.ReadFile(filepath.Join(assets, filepath.FromSlash(to)))
	if err == nil && bytes.Equal(old, data) {
		return false, nil
	}
	sum := sha256.Sum256(data)
	want := result{To: to, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	return true, place(assets, tmp, want, bytes.NewReader(data))
}

func rename(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(from, to)
}
