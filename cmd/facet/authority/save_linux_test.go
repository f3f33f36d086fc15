package authority

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"facet/internal/must"
)

const nobody = 65534

// ownFolder returns a folder. If the test runs as root, another user owns the folder, and
// the test reaches files with his rights.
func ownFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		return dir
	}
	must.Do(t, os.Chown(filepath.Dir(dir), nobody, nobody))
	must.Do(t, os.Chown(dir, nobody, nobody))
	runtime.LockOSThread() // the file system's user belongs to the thread
	must.Do(t, syscall.Setfsuid(nobody))
	t.Cleanup(func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Error(err) // the thread ends with this goroutine
			return
		}
		runtime.UnlockOSThread()
	})
	return dir
}

// A power loss could bring the old name back. A folder without the right to read can't be
// synced.
func TestUnsyncedFolderKeepsOldKey(t *testing.T) {
	t.Parallel()
	dir := ownFolder(t)
	f, err := OpenPlain(dir, "test")
	must.Do(t, err)
	var notices bytes.Buffer
	f.notices = &notices
	before := bytesOf(t, f.key())
	old, err := os.Open(f.key())
	must.Do(t, err)
	defer old.Close()
	must.Do(t, os.Chmod(dir, 0o300))
	f.passphrase = first
	err = f.save(f.ca, f.files())
	must.Do(t, os.Chmod(dir, 0o700))
	must.Do(t, err)
	b, err := io.ReadAll(old)
	if err != nil || string(b) != before {
		t.Errorf("the old file has %.40q, %v", b, err)
	}
	if !strings.Contains(notices.String(), "may still be on the disk: sync folder") {
		t.Errorf("notices %q", notices.String())
	}
	if !encrypted([]byte(bytesOf(t, f.key()))) {
		t.Error("the new key is not in place")
	}
}

func TestReadOnlyKeyIsReplacedAndWiped(t *testing.T) {
	t.Parallel()
	dir := ownFolder(t)
	f, err := OpenPlain(dir, "test")
	must.Do(t, err)
	must.Do(t, os.Chmod(f.key(), 0o400))
	old, err := os.Open(f.key())
	must.Do(t, err)
	defer old.Close()
	_, err = access(dir, "").ChangePassphrase(t.Context(), Passphrase{Text: first})
	must.Do(t, err)
	b, err := io.ReadAll(old)
	if err != nil || len(b) == 0 || bytes.Trim(b, "\x00") != nil {
		t.Errorf("the old file has %.40q, %v", b, err)
	}
	if !encrypted([]byte(bytesOf(t, f.key()))) {
		t.Error("the new key is not in place")
	}
}
