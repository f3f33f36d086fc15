package service

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"facet/cmd/facet/dev"
)

const profileWait = 20 * time.Second

// where is one place that takes processor time. It is known by the prefixes of its
// functions' names. The innermost frame of a stack that has a place decides, so a layer
// includes all functions that it calls, except those with a place of their own.
type where struct {
	name     string
	prefixes []string
}

var places = []where{
	{"kernel: scan", []string{"facet/shard/kernel", "facet/shard/scan", "facet/engine/score"}},
	{"shard: the rest of its search", []string{"facet/shard"}},
	// Code outside Go, in threads of libraries or called by them, belongs to ONNX
	// Runtime.
	{"models and image", []string{"facet/engine", "github.com/yalue/onnxruntime_go", "runtime._ExternalCode"}},
	{"signature", []string{"facet/node/sigv4"}},
	{"TLS of clients and peers", []string{"crypto/tls"}},
	{"sockets (system calls)", []string{"internal/runtime/syscall", "syscall.", "internal/poll"}},
	{"JSON, base64, HTTP", []string{"facet/node/httpapi", "github.com/valyala/fasthttp", "github.com/go-json-experiment", "encoding/json"}},
	{"proof of leadership (Raft)", []string{"facet/raftfsm", "github.com/hashicorp/raft"}},
	{"between nodes: frames, CBOR", []string{"facet/node/transport", "github.com/fxamacker/cbor"}},
	{"router: scatter, merge", []string{"facet/router", "golang.org/x/sync/errgroup"}},
	{"gossip", []string{"github.com/hashicorp/memberlist", "facet/node/membership"}},
	{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcAssistAlloc"}},
	{"scheduler, timers", []string{"runtime.mcall", "runtime.mstart", "runtime.goexit0", "runtime.schedule", "runtime.findRunnable", "runtime.sysmon", "runtime.ready", "runtime.goready"}},
}

const elsewhere = "elsewhere"

// beginProfiles makes all nodes start profiles.
func beginProfiles(i dev.Info) error {
	var errs []error
	for _, n := range i.Nodes {
		if err := os.Remove(filepath.Join(n.Dir, profileFile)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, syscall.Kill(n.PID, beginProfile))
	}
	return errors.Join(errs...)
}

// endProfiles returns the share of each place in the processor time of all nodes since
// beginProfiles.
func endProfiles(ctx context.Context, i dev.Info) (map[string]float64, error) {
	for _, n := range i.Nodes {
		if err := syscall.Kill(n.PID, endProfile); err != nil {
			return nil, err
		}
	}
	sum, all := map[string]time.Duration{}, time.Duration(0)
	for _, n := range i.Nodes {
		name := filepath.Join(n.Dir, profileFile)
		for begin := time.Now(); ; time.Sleep(readyPoll) {
			if _, err := os.Stat(name); err == nil {
				break
			}
			if time.Since(begin) > profileWait {
				return nil, fmt.Errorf("node %s writes no profile", n.Name)
			}
		}
		text, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", name).Output()
		if err != nil {
			return nil, fmt.Errorf("read the profile of node %s: %w", n.Name, err)
		}
		all += readTraces(bytes.NewReader(text), sum)
	}
	shares := map[string]float64{}
	for name, took := range sum {
		shares[name] = took.Seconds() / max(all.Seconds(), 1e-9)
	}
	return shares, nil
}

// readTraces adds the traces that "go tool pprof -traces" prints to sum, and returns
// their total. The first line of a trace has a time and the innermost frame; each
// further line has a caller.
func readTraces(text io.Reader, sum map[string]time.Duration) (all time.Duration) {
	var took time.Duration
	var stack []string
	end := func() {
		if len(stack) > 0 {
			sum[placeOf(stack)] += took
			all += took
		}
		stack, took = nil, 0
	}
	for s := bufio.NewScanner(text); s.Scan(); {
		line := s.Text()
		if strings.HasPrefix(line, "-----") {
			end()
			continue
		}
		fields := strings.Fields(strings.TrimSuffix(strings.TrimSpace(line), " (inline)"))
		switch {
		case len(fields) == 0:
		case len(stack) == 0:
			d, err := time.ParseDuration(fields[0])
			if err == nil && len(fields) > 1 && strings.HasPrefix(line, " ") {
				took, stack = d, append(stack, fields[1])
			}
		default:
			stack = append(stack, fields[0])
		}
	}
	end()
	return all
}

// placeOf returns the place of a stack, given with its innermost frame first.
func placeOf(stack []string) string {
	for _, frame := range stack {
		for _, p := range places {
			if slices.ContainsFunc(p.prefixes, func(prefix string) bool { return strings.HasPrefix(frame, prefix) }) {
				return p.name
			}
		}
	}
	return elsewhere
}
