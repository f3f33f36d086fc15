// Package power makes disks that can lose power, for attacks on clusters. A Drive is a
// block device with a cache. When power fails, each write since the last flush is kept,
// lost or torn, and the writer never learns which. Flushed writes stay. FUSE serves the
// drive's bytes as a file, and a loop device makes a disk of that file. Any file
// system, and any program on it, sees the loss as on a real disk.
//
// It needs Linux, /dev/fuse and the right to mount (root). A Drive by itself needs none
// of these.
//
// The package may import no other package of this module.
package power
