package doctor

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// datasync flushes the contents of a file to the disk, as the logs of the groups do.
func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// fileSystem returns the kind of dir's file system, or "", and its size.
func fileSystem(dir string) (kind string, size uint64) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", 0
	}
	size = s.Blocks * uint64(s.Bsize)
	kinds := map[int64]string{
		unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.NFS_SUPER_MAGIC: "nfs",
		unix.SMB2_SUPER_MAGIC: "cifs", unix.CIFS_SUPER_MAGIC: "cifs", unix.FUSE_SUPER_MAGIC: "fuse",
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", 0x2fc12fc1: "zfs",
	}
	if kind, ok := kinds[s.Type]; ok {
		return kind, size
	}
	return "a file system of type 0x" + strconv.FormatInt(s.Type, 16), size
}

// hugePages returns the mode of transparent huge pages, or "".
func hugePages() string {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), "[")
	mode, _, _ := strings.Cut(rest, "]")
	return mode
}

// clockError returns the largest error of the clock by the kernel, and whether a time service
// keeps it (adjtimex(2)).
func clockError() (off time.Duration, synchronised, known bool) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return 0, false, false
	}
	return time.Duration(t.Maxerror) * time.Microsecond, state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, true
}

// filesMax returns how many files a process may have open.
func filesMax(pid int) (uint64, bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, false
	}
	l, err := p.Limits()
	return l.OpenFiles, err == nil
}

// portOwner returns the process that has a port, or 0 if it can't be seen.
func portOwner(network string, port int) (pid int, name string) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, ""
	}
	sockets := map[string]bool{}
	note := func(local uint64, inode uint64) {
		if local == uint64(port) {
			sockets["socket:["+strconv.FormatUint(inode, 10)+"]"] = true
		}
	}
	const listening = 10
	if network == "tcp" {
		for _, read := range []func() (procfs.NetTCP, error){fs.NetTCP, fs.NetTCP6} { //nolint:staticcheck // netlink would be another library
			lines, _ := read() // a kernel may have no IPv6
			for _, l := range lines {
				if l.St == listening {
					note(l.LocalPort, l.Inode)
				}
			}
		}
	} else {
		for _, read := range []func() (procfs.NetUDP, error){fs.NetUDP, fs.NetUDP6} {
			lines, _ := read()
			for _, l := range lines {
				note(l.LocalPort, l.Inode)
			}
		}
	}
	all, _ := fs.AllProcs()
	for _, p := range all {
		targets, err := p.FileDescriptorTargets()
		if err != nil {
			continue // another user's process
		}
		for _, t := range targets {
			if sockets[t] {
				name, _ := p.Comm()
				return p.PID, name
			}
		}
	}
	return 0, ""
}
