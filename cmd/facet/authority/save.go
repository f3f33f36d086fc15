package authority

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"facet/node/cert"
	"facet/node/datadir"
)

// save writes an authority's certificate and key, each by rename, and overwrites the
// old key. It encrypts the key if the folder has a passphrase.
func (f *Folder) save(ca *cert.CA, files cert.Files) error {
	pair, err := ca.Pair()
	if err != nil {
		return err
	}
	if f.passphrase != "" {
		if pair.Key, err = encrypt(pair.Key, f.passphrase); err != nil {
			return err
		}
	}
	key := files.Key
	if real, err := filepath.EvalSymlinks(key); err == nil {
		key = real // a rename would replace the link and leave the key
	}
	old, err := os.OpenFile(key, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrPermission) && os.Chmod(key, 0o600) == nil { // it was read-only
		old, err = os.OpenFile(key, os.O_WRONLY, 0)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", key, err)
	}
	err = pair.Save(files.Cert, key)
	if old == nil {
		return err
	}
	if err != nil {
		return errors.Join(err, old.Close())
	}
	// Without the new name on the disk, a power loss would bring back the wiped file.
	if err := errors.Join(datadir.Sync(filepath.Dir(key)), datadir.Sync(filepath.Dir(files.Cert))); err != nil {
		f.kept(old, err)
		return old.Close()
	}
	f.wipe(old)
	return nil
}

// wipe overwrites a file that was replaced, and closes it. The new file is in place by
// now, so a failure is a notice.
func (f *Folder) wipe(old *os.File) {
	defer old.Close()
	info, err := old.Stat()
	if err != nil {
		f.kept(old, err)
		return
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 0 {
		f.notice(fmt.Sprintf("the old key of %s has another name (a hard link) and stays there: find and remove it", old.Name()))
		return
	}
	_, err = old.WriteAt(make([]byte, info.Size()), 0)
	if err = errors.Join(err, old.Sync()); err != nil {
		f.kept(old, err)
	}
}

func (f *Folder) kept(old *os.File, err error) {
	f.notice(fmt.Sprintf("the old key of %s may still be on the disk: %v", old.Name(), err))
}
