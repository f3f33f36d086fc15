package machine

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	ticks          = 100 // a second, of the times in /proc (Linux: USER_HZ)
	sampleInterval = 50 * time.Millisecond
)

// Processor returns the kernel's name of the machine's processor.
func Processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// CPU returns the sum of the processor time of processes.
func CPU(pids ...int) (sum time.Duration, err error) {
	for _, pid := range pids {
		took, err := cpu(pid)
		if err != nil {
			return 0, err
		}
		sum += took
	}
	return sum, nil
}

func cpu(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	// After the name, which is in brackets: state is field 3, user and system time are
	// fields 14 and 15 (proc_pid_stat(5)).
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("read processor time: unknown format")
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / ticks), errors.Join(err1, err2)
}

// OwnCPU returns the processor time of this process.
func OwnCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// Resident returns how much memory of processes is in RAM, in MB.
func Resident(pids ...int) (mb float64, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			return 0, fmt.Errorf("read memory: %w", err)
		}
		var size, pages int64
		if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
			return 0, fmt.Errorf("read memory: %w", err)
		}
		mb += float64(pages) * float64(os.Getpagesize()) / 1e6
	}
	return mb, nil
}

// Usage is the time and memory that processes took during a measurement.
type Usage struct {
	MostMB   float64       // the most resident memory
	CPU, Own time.Duration // processor time of these processes, and of this one
	Elapsed  time.Duration
}

// Watch calls do and returns the time and memory that the processes take meanwhile.
func Watch(do func() error, pids ...int) (u Usage, err error) {
	before, err1 := CPU(pids...)
	ownBefore, err2 := OwnCPU()
	if err := errors.Join(err1, err2); err != nil {
		return u, err
	}
	stop, sampled := make(chan struct{}), make(chan float64)
	go func() { // ends with stop
		most := 0.0
		for {
			if mb, err := Resident(pids...); err == nil {
				most = max(most, mb)
			}
			select {
			case <-stop:
				sampled <- most
				return
			case <-time.After(sampleInterval):
			}
		}
	}()
	began := time.Now()
	err = do()
	u.Elapsed = time.Since(began)
	close(stop)
	u.MostMB = <-sampled
	after, err1 := CPU(pids...)
	ownAfter, err2 := OwnCPU()
	u.CPU, u.Own = after-before, ownAfter-ownBefore
	return u, errors.Join(err, err1, err2)
}
