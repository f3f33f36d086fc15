package restart

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"facet/scripts/bench/machine"
)

const (
	// templateBytes is the size of a template of 192 numbers in the kernel, faceBytes
	// the size of its sealed face.
	templateBytes = 1040
	faceBytes     = 877
	pageBytes     = 4096
	extentBytes   = 64 << 20
)

// limits are the times of the unavoidable parts of a restart, each on one core.
type limits struct{ read, decrypt, touch time.Duration }

func measureLimits(segments []string, events int) (l limits, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	if err := readAll(segments); err != nil {
		return l, err
	}
	l.read = time.Since(begin)
	if l.decrypt, err = decryptMany(events); err != nil {
		return l, err
	}
	begin = time.Now()
	err = touch(int64(events) * templateBytes)
	l.touch = time.Since(begin)
	return l, err
}

func readAll(files []string) error {
	buf := make([]byte, 1<<20)
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// decryptMany decrypts a face n times.
func decryptMany(n int) (time.Duration, error) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		return 0, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return 0, err
	}
	nonce := make([]byte, aead.NonceSize())
	sealed := aead.Seal(nil, nonce, make([]byte, faceBytes-aead.Overhead()), nil)
	plain := make([]byte, 0, faceBytes)
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
