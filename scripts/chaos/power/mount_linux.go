package power

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// imageName is the name of the file of a mounted drive.
const imageName = "drive"

// Mounted is a drive that is served as a file.
type Mounted struct {
	*Drive
	server *fuse.Server
	// Image is the path of the file.
	Image string
}

// Mount serves a drive as a file in the empty folder dir.
func Mount(d *Drive, dir string) (*Mounted, error) {
	root := &folder{drive: d}
	server, err := fs.Mount(dir, root, &fs.Options{MountOptions: fuse.MountOptions{
		DirectMountStrict: true, FsName: "drive", Name: "power", DisableXAttrs: true, AllowOther: true,
	}})
	if err != nil {
		return nil, fmt.Errorf("mount a drive on %s: %w", dir, err)
	}
	return &Mounted{d, server, filepath.Join(dir, imageName)}, nil
}

// Close unmounts the file and closes the drive. A program with a mount namespace of its own
// may still use the file through its copy of a mount; it then reads errors.
func (m *Mounted) Close() error {
	err := m.server.Unmount()
	if errors.Is(err, syscall.EBUSY) {
		err = syscall.Unmount(filepath.Dir(m.Image), syscall.MNT_DETACH)
	}
	if err != nil {
		err = fmt.Errorf("unmount a drive: %w", err)
	}
	return errors.Join(err, m.Drive.Close())
}

// ownMounts is set in the environment of a process that called OwnMounts.
const ownMounts = "FACET_CHAOS_OWN_MOUNTS"

// OwnMounts returns in a process with a mount namespace of its own: other programs neither
// see nor copy the mounts that it makes. It starts the program again and returns there. It
// returns at once in a process that has no right to make namespaces.
func OwnMounts() error {
	if os.Geteuid() != 0 || os.Getenv(ownMounts) != "" {
		return nil
	}
	runtime.LockOSThread() // the namespace is the thread's until Exec
	defer runtime.UnlockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return nil //nolint:nilerr // the mounts are then everybody's
	}
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(program, os.Args, append(os.Environ(), ownMounts+"=1"))
}

// folder is the root of the file system. It contains the image.
type folder struct {
	fs.Inode
	drive *Drive
}

// image is the file. The system caches nothing of it.
type image struct {
	fs.Inode
	drive *Drive
}

var (
	_ fs.NodeOnAdder   = (*folder)(nil)
	_ fs.NodeOpener    = (*image)(nil)
	_ fs.NodeReader    = (*image)(nil)
	_ fs.NodeWriter    = (*image)(nil)
	_ fs.NodeFsyncer   = (*image)(nil)
	_ fs.NodeGetattrer = (*image)(nil)
)

// OnAdd adds the image to the folder.
func (f *folder) OnAdd(ctx context.Context) {
	f.AddChild(imageName, f.NewPersistentInode(ctx, &image{drive: f.drive}, fs.StableAttr{Mode: syscall.S_IFREG}), false)
}

// Getattr returns the size.
func (i *image) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o600, uint64(i.drive.bytes)
	return 0
}

// Open passes reads and writes to the drive.
func (i *image) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

// Read reads from the drive.
func (i *image) Read(_ context.Context, _ fs.FileHandle, b []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	n, err := i.drive.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, syscall.EIO
	}
	return fuse.ReadResultData(b[:n]), 0
}

// Write writes to the drive's cache. It reports no error when power has failed: the
// writer of a real disk gets none either, because it has no power.
func (i *image) Write(_ context.Context, _ fs.FileHandle, b []byte, at int64) (uint32, syscall.Errno) {
	if _, err := i.drive.WriteAt(b, at); err != nil && !errors.Is(err, ErrOff) {
		return 0, syscall.EIO
	}
	return uint32(len(b)), 0
}

// Fsync flushes the drive.
func (i *image) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	_ = i.drive.Flush() // as in Write
	return 0
}
