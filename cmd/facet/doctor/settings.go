package doctor

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"facet/cmd/facet/config"
	"facet/cmd/facet/dev"
	packs "facet/cmd/facet/models"
	"facet/node/datadir"
	"facet/node/keys"
	"facet/node/limits"
	"facet/raftfsm/metafsm"
)

const (
	// filesNeeded is how many files and connections a node may have open: 8,192 clients, and its
	// own.
	filesNeeded = 10_000
	// memoryShare is the part of the machine's memory, in per cent, that leaves room for models and
	// requests.
	memoryShare = 85
)

// pidFile returns the pid file of the node with these settings.
func pidFile(s *config.Settings) string { return filepath.Join(s.Dir, dev.PIDFile) }

// settings checks settings against each other and against the machine.
func (x *examination) settings(s *config.Settings) {
	before := len(x.Findings)
	warn := func(do, format string, args ...any) { x.warn("settings", do, format, args...) }
	cores := runtime.GOMAXPROCS(0)
	if s.Workers > cores {
		warn("leave workers out", "workers is %d and the machine has %d cores: images wait for each other", s.Workers, cores)
	}
	if workers := cmp.Or(s.Workers, cores); s.JobSlots > workers {
		warn("set job-slots to half of the workers", "job-slots is %d, more than the %d workers: bulk registrations take the places of requests", s.JobSlots, workers)
	}
	if s.TenantRate > 0 && s.ApplicationRate > s.TenantRate {
		warn("lower rate-application", "rate-application is above rate-tenant, which comes first: it bounds nothing")
	}
	if s.Replicas%2 == 0 {
		warn("found the cluster with 1, 3 or 5", "replicas is %d: an even number survives no more deaths than one less", s.Replicas)
	}
	if s.Expect > 1 && s.Expect < s.Replicas { // one founds the cluster of facet cluster init, and others join it
		warn("set bootstrap-expect to the number of machines", "%d nodes found the cluster, and each shard should have %d replicas", s.Expect, s.Replicas)
	}
	own := s.Advertised()
	others := slices.DeleteFunc(slices.Clone(s.Seeds), func(a string) bool { return a == own || a == s.PeerAddress })
	if s.Expect > 1 && len(others)+1 < s.Expect {
		warn("name the other founders as seeds", "bootstrap-expect is %d, and the seeds name %d other nodes", s.Expect, len(others))
	}
	remote := slices.ContainsFunc(others, func(a string) bool { return !loopback(a) })
	if remote && loopback(own) {
		x.problem("settings", "set peer-address, or peer-advertise, to an address that they reach", "other machines are seeds, and they can't reach %s", own)
	}
	if remote && loopback(strings.TrimPrefix(cmp.Or(s.PublicURL, "https://"+s.PublicAddress), "https://")) {
		warn("set public-address and public-url", "the clients' port is on loopback: only this machine reaches it")
	}
	if !loopback(s.AdminAddress) {
		warn("keep admin-address on loopback", "others reach the operators' port %s, whose metrics need no certificate", s.AdminAddress)
	}
	if len(x.Findings) == before {
		x.ok("settings", "%s fits %d cores", cmp.Or(s.Name, "the node"), cores)
	}
}

// loopback reports whether an address names this machine only.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// memory checks the memory for events against the machine.
func (x *examination) memory(s *config.Settings) {
	all := limits.SystemMemory()
	if all == math.MaxInt64 {
		return // unknown
	}
	mib := all >> 20
	switch {
	case s.Memory > mib:
		x.problem("memory", "lower it, or leave it out", "memory is %d MiB, and the machine or its control group has %d MiB", s.Memory, mib)
	case s.Memory > mib*memoryShare/100:
		x.warn("memory", "leave room for models and requests", "memory is %d MiB of the machine's %d MiB", s.Memory, mib)
	default:
		x.ok("memory", "%d MiB for events, of %d MiB", cmp.Or(s.Memory, mib*3/4), mib)
	}
}

// files checks the limit of open files: the running node's, or else the one that this process has
// and a node started here would have.
func (x *examination) files() {
	of, most := "a node started from here", uint64(0)
	if n, ok := filesMax(x.node); ok && x.node > 0 {
		of, most = "the node", n
	} else {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			return
		}
		most = limit.Max // Go raises its own limit to it
	}
	if most < filesNeeded {
		x.warn("open files", "set LimitNOFILE=65536 in the unit, or raise ulimit -n", "%s may have %d files and connections open, fewer than the %d that it may need", of, most, filesNeeded)
		return
	}
	x.ok("open files", "%s may have %d files and connections open", of, most)
}

// keys checks the shared keys.
func (x *examination) keys(ctx context.Context, s *config.Settings) {
	for _, k := range []struct {
		name, file string
		command    []string
	}{{"cluster-key", s.ClusterKey, s.ClusterKeyCommand}, {"gossip-key", s.GossipKey, s.GossipKeyCommand}} {
		if len(k.command) > 0 {
			x.ok(k.name, "comes from a command, which was not run")
			continue
		}
		if err := keys.Check(ctx, keys.SourceOf(k.file, s.CredentialsDir, nil)); err != nil {
			x.problem(k.name, "copy the file from another node, or restore your copy of it", "%v", err)
			continue
		}
		x.keyMode(k.name, k.file)
	}
}

// keyMode checks that only its owner reads a file with a key.
func (x *examination) keyMode(check, name string) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		x.problem(check, "look at the rights of its folder", "%v", err)
	case info.Mode().Perm()&0o077 != 0:
		x.warn(check, "chmod 600 "+name, "others can read %s (%s)", name, info.Mode().Perm())
	default:
		x.ok(check, "%s is whole, and only its owner reads it", name)
	}
}

// models checks the model pack, ONNX Runtime and the level of the data directory.
func (x *examination) models(s *config.Settings) {
	identity, _, err := datadir.Pack(s.Dir)
	if err == nil {
		err = datadir.CheckLevel(s.Dir, metafsm.Level)
	}
	if err != nil {
		x.problem("data", "run a release that reads it (docs/upgrade.md)", "%v", err)
		return
	}
	pack, err := packs.Source{Pack: s.Models, Identity: identity}.Read()
	if err != nil {
		x.problem("models", "see docs/formats/pack.md", "%v", err)
		return
	}
	if _, err := os.Stat(s.ONNXRuntime); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = errors.New("there is no ONNX Runtime at " + s.ONNXRuntime)
		}
		x.problem("models", "name its library with onnxruntime, or run make setup", "%v", err)
		return
	}
	x.ok("models", "pack %s (%.12s)", filepath.Base(pack.Dir()), pack.ID)
}
