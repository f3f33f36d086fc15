package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// lockTries is how many times Lock opens the pid file, if the file is removed each
// time before Lock has locked it.
const lockTries = 10

// RunningError is returned when another process has locked the pid file.
type RunningError struct{ PID int }

// Error returns a text that names the process.
func (e *RunningError) Error() string { return fmt.Sprintf("process %d runs on it already", e.PID) }

// PIDFile is a pid file that this process has locked. A process must lock a file
// only once and open it nowhere else: closing any other handle on it would release
// the lock (POSIX; fcntl(2)).
type PIDFile struct{ file *os.File }

// Lock creates the pid file name, or takes over the file of a dead process. It
// returns a *RunningError while another process has it.
func Lock(name string) (*PIDFile, error) {
	for range lockTries {
		p, err := lock(name)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", filepath.Base(name), err)
		}
		if p != nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("lock %s: it is removed again and again", filepath.Base(name))
}

// lock returns nil when the file was removed between its opening and its locking.
// The lock would then be on a file that no other process sees.
func lock(name string) (*PIDFile, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, wholeFile()); err != nil {
		pid, held := holder(f)
		f.Close()
		if held {
			return nil, &RunningError{PID: pid}
		}
		return nil, err
	}
	locked, err1 := f.Stat()
	named, err2 := os.Stat(name)
	if errors.Is(err2, os.ErrNotExist) || err1 == nil && err2 == nil && !os.SameFile(locked, named) {
		return nil, f.Close()
	}
	if err := errors.Join(err1, err2, f.Truncate(0)); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		f.Close()
		return nil, err
	}
	return &PIDFile{file: f}, nil
}

// Close removes the file and releases the lock.
func (p *PIDFile) Close() error {
	return errors.Join(os.Remove(p.file.Name()), p.file.Close())
}

// Holder returns the process that has locked the pid file name, and false when
// there is none. It does not see a lock of this process.
func Holder(name string) (pid int, running bool) {
	f, err := os.Open(name)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	return holder(f)
}

func holder(f *os.File) (pid int, running bool) {
	l := wholeFile()
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, l); err != nil || l.Type == syscall.F_UNLCK {
		return 0, false
	}
	return int(l.Pid), true
}

func wholeFile() *syscall.Flock_t {
	return &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
}
