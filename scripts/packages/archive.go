package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// archive writes tar archives that depend on names, on what is executable, and on content only.
type archive struct {
	w     *tar.Writer
	epoch time.Time
}

// add writes what dir has, below the folder prefix of the archive, in the order of names. keep
// chooses among the paths below dir; it may be nil.
func (a archive) add(dir, prefix string, keep func(rel string) bool) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == "." || keep != nil && !keep(rel) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		link := ""
		if d.Type() == fs.ModeSymlink {
			if link, err = os.Readlink(name); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		h.Name, h.Mode = filepath.ToSlash(filepath.Join(prefix, rel)), 0o644
		if d.IsDir() {
			h.Name += "/"
		}
		if info.Mode()&0o100 != 0 { // whatever the umask was
			h.Mode = 0o755
		}
		return a.write(h, name)
	})
}

// write writes one entry of root, with the content of the file called from.
func (a archive) write(h *tar.Header, from string) error {
	h.ModTime, h.AccessTime, h.ChangeTime = a.epoch, time.Time{}, time.Time{}
	h.Uname, h.Gname, h.Format = "", "", tar.FormatPAX
	if h.Typeflag != tar.TypeDir || h.Uid != user {
		h.Uid, h.Gid = 0, 0
	}
	if err := a.w.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(a.w, f)
	return err
}

// folder writes an empty folder that belongs to uid.
func (a archive) folder(name string, mode int64, uid int) error {
	return a.write(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, Uid: uid, Gid: uid}, "")
}

// link writes a symbolic link.
func (a archive) link(name, to string) error {
	return a.write(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}, "")
}

// text writes a small file of root.
func (a archive) text(name, content string) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: a.epoch, Format: tar.FormatPAX}
	if err := a.w.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.WriteString(a.w, content)
	return err
}

// writeArchive creates a file: a tar archive of what fill writes, compressed if its name ends in gz.
func writeArchive(name string, epoch time.Time, fill func(archive) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close() // twice if all went well
	var to io.WriteCloser = f
	if filepath.Ext(name) == ".tgz" {
		to = gzip.NewWriter(f)
	}
	w := tar.NewWriter(to)
	if err := fill(archive{w, epoch}); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(name), err)
	}
	return errors.Join(w.Close(), to.Close())
}
