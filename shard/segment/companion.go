package segment

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// A file may have a companion: what somebody has derived from its records, and can derive again. It
// is written after the file, and never outlives it: Collect removes it with the file, even while it
// is being written. The store gives its bytes no meaning.
//
//	HASH.seg          the file
//	HASH.codes.seg    its companion
//	HASH.codes.tmp    its companion, being written
const (
	companionSuffix   = ".codes" + fileSuffix
	companionTempName = ".codes" + temporarySuffix
)

// IsCompanion reports whether a file of this name is a companion, finished or not.
func IsCompanion(name string) bool {
	return strings.HasSuffix(name, companionSuffix) || strings.HasSuffix(name, companionTempName)
}

// accompaniedBy returns the file that a companion of this name has.
func accompaniedBy(name string) (h Hash, ok bool) {
	digits, ok := strings.CutSuffix(name, companionSuffix)
	if !ok || len(digits) != hex.EncodedLen(len(h)) {
		return h, false
	}
	_, err := hex.Decode(h[:], []byte(digits))
	return h, err == nil
}

// companionBytesMax is the largest companion.
const companionBytesMax = fileBytesMax

// Companion is an open companion, for reading.
type Companion struct {
	io.ReaderAt
	size int64
	at   readable
}

// Size returns the length in bytes.
func (c *Companion) Size() int64 { return c.size }

// Close closes it.
func (c *Companion) Close() {
	_ = c.at.Close() // a close after reading loses nothing
}

// Companion opens the companion of a file. The error wraps ErrMissing if there is none.
func (s *Store) Companion(h Hash) (*Companion, error) {
	at, size, err := s.disk.open(h.String() + companionSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: companion of segment %s", ErrMissing, h)
	case err != nil:
		return nil, fmt.Errorf("open the companion of segment %s: %w", h, err)
	case size > companionBytesMax:
		return nil, errors.Join(fmt.Errorf("%w: the companion of segment %s has %d bytes", ErrCorrupt, h, size), at.Close())
	}
	return &Companion{at, size, at}, nil
}

// Accompanied reports whether a file has a companion.
func (s *Store) Accompanied(h Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accompanied[h]
}

// Unaccompany removes the companion of a file, if there is one.
func (s *Store) Unaccompany(h Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.accompanied, h)
	if err := s.disk.remove(h.String() + companionSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the companion of segment %s: %w", h, err)
	}
	return nil
}

// CompanionWriter writes a companion. It is for one goroutine, which ends it by Close or Cancel.
type CompanionWriter struct {
	store *Store
	of    Hash
	to    writable
}

// Accompany starts the companion of a file, which replaces an older one. Only one goroutine may do so
// at a time. It holds no reference on the file: if the file goes meanwhile, so does the unfinished
// companion, and ErrMissing is returned at the end. The error wraps ErrMissing if nobody has the file
// open.
func (s *Store) Accompany(h Hash) (*CompanionWriter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[h] == nil {
		return nil, fmt.Errorf("%w: segment %s, for a companion", ErrMissing, h)
	}
	name := h.String() + companionTempName
	to, err := s.disk.create(name)
	if errors.Is(err, fs.ErrExist) { // Cancel could not remove it
		if err = s.disk.remove(name); err == nil {
			to, err = s.disk.create(name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create the companion of segment %s: %w", h, err)
	}
	return &CompanionWriter{s, h, to}, nil
}

// Write appends the next bytes.
func (w *CompanionWriter) Write(b []byte) (int, error) { return w.to.Write(b) }

// Close finishes the companion, which then survives a loss of power. An error leaves none behind, and
// wraps ErrMissing if the file went meanwhile.
func (w *CompanionWriter) Close() error {
	err := errors.Join(w.to.Sync(), w.to.Close())
	if err == nil {
		err = w.admit()
	}
	if err == nil {
		return w.store.Sync()
	}
	return errors.Join(fmt.Errorf("write the companion of segment %s: %w", w.of, err), w.remove())
}

// admit gives the companion its name, unless the file is gone.
func (w *CompanionWriter) admit() error {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[w.of] == nil {
		return fmt.Errorf("%w: its segment", ErrMissing)
	}
	err := s.disk.rename(w.of.String()+companionTempName, w.of.String()+companionSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist): // collected, and the file has come again
		return fmt.Errorf("%w: %w", ErrMissing, err)
	case err == nil:
		s.accompanied[w.of] = true
	}
	return err
}

// Cancel drops the companion.
func (w *CompanionWriter) Cancel() error { return errors.Join(w.to.Close(), w.remove()) }

func (w *CompanionWriter) remove() error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if err := w.store.disk.remove(w.of.String() + companionTempName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
