//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// processor names the machine's processor as the kernel does.
func processor() string {
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

// sample are measurements of one thing.
type sample []time.Duration

// ms returns the quantile q, 0 to 1, in milliseconds; 0 of none.
func (s sample) ms(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Seconds() * 1e3
}

// times tells a sample's quantiles.
func (s sample) times() string {
	return fmt.Sprintf("p50 %.1f, p99 %.1f, max %.1f ms of %d", s.ms(.5), s.ms(.99), s.ms(1), len(s))
}
