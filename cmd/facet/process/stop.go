package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// pollInterval is how often Stop checks whether the process has ended.
const pollInterval = 50 * time.Millisecond

// Stop ends the process that has locked the pid file name. It sends SIGTERM first,
// and SIGKILL when the process still holds the lock after grace. It returns when
// the lock is free, and does nothing when it is free already.
func Stop(name string, grace time.Duration) error {
	pid, running := Holder(name)
	if !running {
		return nil
	}
	if err := signalHolder(name, pid, syscall.SIGTERM); err != nil {
		return err
	}
	if waitFree(name, grace) {
		return nil
	}
	if err := signalHolder(name, pid, syscall.SIGKILL); err != nil {
		return err
	}
	if !waitFree(name, grace) {
		return fmt.Errorf("process %d, which holds %s, can't be ended", pid, filepath.Base(name))
	}
	return nil
}

// signalHolder sends sig to pid if it still holds the lock.
func signalHolder(name string, pid int, sig syscall.Signal) error {
	if now, running := Holder(name); !running || now != pid {
		return nil
	}
	if pid <= 1 || pid == os.Getpid() {
		return fmt.Errorf("%s names process %d, which is not to be ended", filepath.Base(name), pid)
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", sig, pid, err)
	}
	return nil
}

func waitFree(name string, limit time.Duration) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(pollInterval) {
		if _, running := Holder(name); !running {
			return true
		}
	}
	_, running := Holder(name)
	return !running
}
