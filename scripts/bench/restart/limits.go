package restart

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"facet/scripts/bench/machine"
	"facet/shard/segment"
)

const (
	// templateBytes is the size of a template of 192 numbers in the kernel, faceBytes
	// the size of its sealed face.
	templateBytes = 1040
	faceBytes     = 877
	// pieceBytes is about the size of a sealed piece of codes.
	pieceBytes  = 300_000
	pageBytes   = 4096
	extentBytes = 64 << 20
)

// files are what a start reads.
type files struct {
	segments []string
	bytes    int64 // of the segments
	codes    []string
	coded    int64 // bytes of the codes
	// clear is how much of each segment a start reads, from some offset on, if it has codes.
	clear []stretch
	plain int64 // bytes of these
}

type stretch struct{ from, to int64 }

// find lists the files in a folder. A start with codes reads them and the clear blocks of segments,
// which lie behind the sealed ones. A start without codes reads the segments.
func find(dir string) (f files, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".seg" {
			return err
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case segment.IsCompanion(d.Name()):
			f.codes, f.coded = append(f.codes, path), f.coded+info.Size()
			return nil
		}
		f.segments, f.bytes = append(f.segments, path), f.bytes+info.Size()
		return nil
	})
	return f, err
}

// findClear finds the clear blocks of the segments. The node must be down: opening the folder removes
// what is being written.
func (f *files) findClear() error {
	for _, path := range f.segments {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		clear, err := clearOf(path)
		if err != nil {
			return err
		}
		f.clear, f.plain = append(f.clear, stretch{info.Size() - clear, info.Size()}), f.plain+clear
	}
	return nil
}

// clearOf returns the bytes of a segment's clear blocks (shard/segment/format.md).
func clearOf(path string) (bytes int64, err error) {
	store, err := segment.Open(filepath.Dir(path), segment.Options{})
	if err != nil {
		return 0, err
	}
	var h segment.Hash
	if _, err := hex.Decode(h[:], []byte(strings.TrimSuffix(filepath.Base(path), ".seg"))); err != nil {
		return 0, err
	}
	file, err := store.File(h)
	if err != nil {
		return 0, err
	}
	defer file.Release()
	const head = 12 + 4 // sequence, length, length of the sealed part
	return bytes, file.Clear(func(_ uint64, clear []byte, _ int) error {
		bytes += head + int64(len(clear))
		return nil
	})
}

// limits are the times of the unavoidable parts of a restart, each on one core.
type limits struct{ read, decrypt, touch time.Duration }

// measure measures the limits of a start. With codes it decrypts the codes only.
func (f *files) measure(events int) (l limits, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	sealed, size, memory := events, faceBytes, int64(events)*templateBytes
	if len(f.codes) == 0 {
		err = readAll(f.segments, nil)
	} else {
		sealed, size, memory = int(f.coded/pieceBytes), pieceBytes, f.coded+f.plain
		err = errors.Join(readAll(f.segments, f.clear), readAll(f.codes, nil))
	}
	if err != nil {
		return l, err
	}
	l.read = time.Since(begin)
	if l.decrypt, err = decryptMany(sealed, size); err != nil {
		return l, err
	}
	begin = time.Now()
	err = touch(memory)
	l.touch = time.Since(begin)
	return l, err
}

// readAll reads files, or a stretch of each.
func readAll(files []string, stretches []stretch) error {
	buf := make([]byte, 1<<20)
	for i, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		r := io.Reader(struct{ io.Reader }{f})
		if stretches != nil {
			r = io.NewSectionReader(f, stretches[i].from, stretches[i].to-stretches[i].from)
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, buf)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// decryptMany decrypts a text of so many bytes n times.
func decryptMany(n, size int) (time.Duration, error) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		return 0, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return 0, err
	}
	nonce := make([]byte, aead.NonceSize())
	sealed := aead.Seal(nil, nonce, make([]byte, size-aead.Overhead()), nil)
	plain := make([]byte, 0, size)
	begin := time.Now()
	for range n {
		if _, err := aead.Open(plain, nonce, sealed, nil); err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}

// touch allocates memory as the kernel's arena does, and writes to every page.
func touch(bytes int64) (err error) {
	for ; bytes > 0; bytes -= extentBytes {
		b, release, failure := machine.MapHuge(extentBytes)
		if failure != nil {
			return failure
		}
		defer func() { err = errors.Join(err, release()) }() // all stay until the end
		for i := 0; i < len(b); i += pageBytes {
			b[i] = 1
		}
	}
	return nil
}

// dropCache makes the system drop its cache of files.
func dropCache() error {
	unix.Sync()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0o200); err != nil {
		return fmt.Errorf("drop the file cache (as root): %w", err)
	}
	return nil
}
