package machine

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Busy is the time that the machine's processors have worked since the machine started.
type Busy struct {
	All    time.Duration
	Others time.Duration // neither idle nor spent on the given processes
}

// ReadBusy returns the time of all processors. Others does not include the processes in
// own.
func ReadBusy(own []int) (Busy, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Busy{}, err
	}
	u, err := parseStat(string(text))
	if err != nil {
		return Busy{}, err
	}
	d, err := CPU(own...)
	u.Others -= d
	return u, err
}

// parseStat parses the first line of /proc/stat (proc_stat(5)). Its columns are user,
// nice, system, idle, waiting for disks, interrupts, soft interrupts, and stolen by the
// host.
func parseStat(text string) (Busy, error) {
	const columns, idle, disk = 8, 3, 4
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 1+columns {
		return Busy{}, errors.New("read the processors' use: unknown format")
	}
	var u Busy
	for i, f := range fields[1 : 1+columns] {
		var n int64
		if _, err := fmt.Sscan(f, &n); err != nil {
			return Busy{}, fmt.Errorf("read the processors' use: %w", err)
		}
		d := time.Duration(n) * (time.Second / ticks)
		u.All += d
		if i != idle && i != disk {
			u.Others += d
		}
	}
	return u, nil
}
