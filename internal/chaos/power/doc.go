// Package power makes disks that can lose power, for attacks on clusters. A Drive is a
// block device with a cache that forgets: what was written since the last flush is lost,
// kept or torn when power goes, as the writer never knows; what was flushed stays. Its
// bytes are served as a file by FUSE, which a loop device makes a disk of: any file
// system, and any program on it, meets the loss as it meets that of a real disk.
//
// It needs Linux, /dev/fuse and the right to mount (root); a Drive by itself needs
// nothing.
//
// The package may import no other package of this module.
package power
