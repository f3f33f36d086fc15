package main

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"time"
)

func hasPart(list, name string) bool { return slices.Contains(strings.Split(list, ","), name) }

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

func (s *sample) time(do func() error) error {
	start := time.Now()
	err := do()
	*s = append(*s, time.Since(start))
	return err
}

// at returns the quantile q, 0 to 1.
func (s sample) at(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s sample) ms() float64 { return s.at(.5).Seconds() * 1e3 }

// tail is p99 / p50.
func (s sample) tail() float64 { return ms(s.at(.99)) / ms(s.at(.5)) }

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
