package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	fileSuffix      = ".seg"
	temporarySuffix = ".tmp"
	// cacheBlocks is how many sealed blocks a store keeps in memory. A reader that takes one record
	// after the other then reads each block once.
	cacheBlocks = 8
)

// Options configure a store.
type Options struct {
	// Bytes is the approximate size of a full file; 0 means BytesDefault.
	Bytes int64
	// Damaged is called when a sound file has become unreadable, on the goroutine that reads; it
	// may be nil.
	Damaged func(error)
}

// Ref names a file.
type Ref struct {
	Hash  Hash
	Bytes int64
}

// Store is a folder of files. Any goroutine may call its methods.
type Store struct {
	disk    disk
	bytes   int64
	damaged func(error)
	next    atomic.Uint64 // number of the last temporary file

	cache [cacheBlocks]atomic.Pointer[cached]

	// mu guards files, every File's refs, and accompanied: which files have companions.
	mu          sync.Mutex
	files       map[Hash]*File
	accompanied map[Hash]bool
}

// Open opens the folder dir, which it makes if need be, and removes unfinished files of a crash.
// The store needs no Close; callers release its files and sets.
func Open(dir string, o Options) (*Store, error) {
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	return open(osDisk(dir), o)
}

func open(d disk, o Options) (*Store, error) {
	s := &Store{disk: d, bytes: o.Bytes, damaged: o.Damaged, files: make(map[Hash]*File), accompanied: make(map[Hash]bool)}
	if s.bytes == 0 {
		s.bytes = BytesDefault
	}
	if s.damaged == nil {
		s.damaged = func(error) {}
	}
	names, err := d.list()
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, temporarySuffix) {
			if err := d.remove(name); err != nil {
				return nil, fmt.Errorf("remove unfinished segment: %w", err)
			}
		}
		if h, ok := accompaniedBy(name); ok {
			s.accompanied[h] = true
		}
	}
	return s, nil
}

// admit renames a finished file to its hash, and opens it.
func (s *Store) admit(name string, h Hash) (*File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.disk.rename(name, h.String()+fileSuffix); err != nil {
		return nil, err
	}
	return s.open(h)
}

// File opens a file; the caller releases it. The error wraps ErrMissing or
// ErrCorrupt.
func (s *Store) File(h Hash) (*File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(h)
}

// open returns a file with one more reference. The caller holds mu.
func (s *Store) open(h Hash) (*File, error) {
	if f := s.files[h]; f != nil {
		f.refs++
		return f, nil
	}
	at, size, err := s.disk.open(h.String() + fileSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: segment %s", ErrMissing, h)
	}
	if err != nil {
		return nil, fmt.Errorf("open segment %s: %w", h, err)
	}
	f, err := readFile(s, Ref{h, size}, at)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open segment %s: %w", h, err), at.Close())
	}
	s.files[h] = f
	return f, nil
}

// Has reports whether the file exists and can be opened.
func (s *Store) Has(h Hash) bool {
	f, err := s.File(h)
	if err != nil {
		return false
	}
	f.Release()
	return true
}

// Held reports whether somebody has a file open, so that Collect does not remove it.
func (s *Store) Held(h Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[h] != nil
}

// Sync makes the files written so far survive a loss of power.
func (s *Store) Sync() error {
	if err := s.disk.sync(); err != nil {
		return fmt.Errorf("sync the folder of segments: %w", err)
	}
	return nil
}

// Collect removes every file without a reference, with its companion, and drops cached blocks.
func (s *Store) Collect() error {
	s.Forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(map[string]bool, len(s.files))
	for h := range s.files {
		for _, suffix := range []string{fileSuffix, companionSuffix, companionTempName} {
			held[h.String()+suffix] = true
		}
	}
	names, err := s.disk.list()
	if err != nil {
		return fmt.Errorf("list segments: %w", err)
	}
	for _, name := range names {
		if held[name] || !strings.HasSuffix(name, fileSuffix) && !strings.HasSuffix(name, companionTempName) {
			continue
		}
		err = errors.Join(err, s.disk.remove(name))
		if h, ok := accompaniedBy(name); ok {
			delete(s.accompanied, h)
		}
	}
	if err != nil {
		return fmt.Errorf("remove segments: %w", err)
	}
	return nil
}

// Forget drops cached blocks.
func (s *Store) Forget() {
	for i := range s.cache {
		s.cache[i].Store(nil)
	}
}
