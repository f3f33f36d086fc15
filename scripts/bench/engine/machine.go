package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// use is how the machine's processors spent their time since it started.
type use struct {
	all    time.Duration
	others time.Duration // neither idle nor spent on the processes asked for
}

// busy reads it; own are the processes that are not others.
func busy(own []int) (use, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return use{}, err
	}
	u, err := parseStat(string(text))
	if err != nil {
		return use{}, err
	}
	var errs []error
	for _, pid := range own {
		d, err := cpu(pid)
		u.others -= d
		errs = append(errs, err)
	}
	return u, errors.Join(errs...)
}

// parseStat sums the first line of /proc/stat (proc_stat(5)): user, nice, system,
// idle, waiting for disks, interrupts, soft ones, and stolen by the host.
func parseStat(text string) (use, error) {
	const columns, idle, disk = 8, 3, 4
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 1+columns {
		return use{}, errors.New("read the processors' use: unknown format")
	}
	var u use
	for i, f := range fields[1 : 1+columns] {
		var n int64
		if _, err := fmt.Sscan(f, &n); err != nil {
			return use{}, fmt.Errorf("read the processors' use: %w", err)
		}
		d := time.Duration(n) * (time.Second / ticks)
		u.all += d
		if i != idle && i != disk {
			u.others += d
		}
	}
	return u, nil
}
