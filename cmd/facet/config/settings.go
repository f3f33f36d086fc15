package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"facet/node"
	"facet/node/httpapi"
	"facet/node/sigv4"
	"facet/raftfsm"
)

// Defaults of addresses and of a cluster's shape.
const (
	PeerAddressDefault   = "127.0.0.1:7421"
	PublicAddressDefault = "127.0.0.1:7420"
	AdminAddressDefault  = "127.0.0.1:7422"
	ShardsDefault        = 16
	ReplicasDefault      = 3

	jobSlotsMax      = 256     // each may take a file of 20 MiB
	memoryMax        = 1 << 30 // MiB
	bodyLimitDefault = 20      // MiB
	bodyLimitMax     = 40      // MiB; a tenant may always have one such body in memory
	mustSignMax      = 16
)

// LogFormat is the format of log lines.
type LogFormat string

// The log formats. LogAuto is text on a terminal and JSON elsewhere.
const (
	LogAuto LogFormat = "auto"
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Health says who may read health.
type Health string

// The clients that may read health: those that sign, or all.
const (
	HealthSigned Health = "signed"
	HealthOpen   Health = "open"
)

// Console says whether nodes serve the web console.
type Console string

// The values of Console.
const (
	ConsoleOn  Console = "on"
	ConsoleOff Console = "off"
)

// SignatureForms says which canonical forms of a request a signature may cover.
type SignatureForms string

// The canonical forms: those that common signers use, or the specification's alone.
const (
	FormsTolerant SignatureForms = "tolerant"
	FormsStrict   SignatureForms = "strict"
)

// Settings contains all settings of `facet serve`.
type Settings struct {
	// Doubts has a sentence for each variable that is no setting, and whose name is like that of one, and
	// for a setting that is gone.
	Doubts []string `koanf:"-"`

	Name string `koanf:"name"`
	Zone string `koanf:"zone"`
	Dir  string `koanf:"dir"`

	PeerAddress   string `koanf:"peer-address"`
	PeerAdvertise string `koanf:"peer-advertise"`
	PublicAddress string `koanf:"public-address"`
	PublicURL     string `koanf:"public-url"`
	AdminAddress  string `koanf:"admin-address"`

	Seeds    []string `koanf:"seeds"`
	Expect   int      `koanf:"bootstrap-expect"`
	Shards   int      `koanf:"shards"`
	Replicas int      `koanf:"replicas"`

	RebuildAfter time.Duration `koanf:"rebuild-after"`

	Certificates string `koanf:"certificates"`
	ClusterKey   string `koanf:"cluster-key"`
	GossipKey    string `koanf:"gossip-key"`
	// The commands print the keys, instead of ClusterKey and GossipKey.
	ClusterKeyCommand []string `koanf:"cluster-key-command"`
	GossipKeyCommand  []string `koanf:"gossip-key-command"`
	// CredentialsDir is the folder of systemd's credentials, or empty.
	CredentialsDir string `koanf:"-"`

	Models      string `koanf:"models"`
	ONNXRuntime string `koanf:"onnxruntime"`
	// ONNXRuntimeSHA256 is the hash of another library than the one that set-up installs.
	ONNXRuntimeSHA256 string `koanf:"onnxruntime-sha256"`
	Workers           int    `koanf:"workers"`

	Bucket   string `koanf:"bucket"`
	JobSlots int    `koanf:"job-slots"`
	Memory   int64  `koanf:"memory"`

	DiskReserve int64 `koanf:"disk-reserve"`

	BackupTo    string        `koanf:"backup-to"`
	BackupEvery time.Duration `koanf:"backup-every"`
	BackupKeep  int           `koanf:"backup-keep"`

	Health         Health         `koanf:"health"`
	Console        Console        `koanf:"console"`
	SignatureForms SignatureForms `koanf:"signature-forms"`
	MustSign       []string       `koanf:"must-sign"`
	BodyLimit      int            `koanf:"body-limit"`

	Region string   `koanf:"region"`
	CORS   []string `koanf:"cors"`

	TenantRate       float64 `koanf:"rate-tenant"`
	TenantBurst      int     `koanf:"rate-tenant-burst"`
	ApplicationRate  float64 `koanf:"rate-application"`
	ApplicationBurst int     `koanf:"rate-application-burst"`

	Heartbeat time.Duration `koanf:"raft-heartbeat"`
	Election  time.Duration `koanf:"raft-election"`
	Lease     time.Duration `koanf:"raft-lease"`
	Stall     time.Duration `koanf:"raft-stall"`

	TracesTo    string  `koanf:"traces-to"`
	TracesRatio float64 `koanf:"traces-ratio"`

	LogLevel  slog.Level `koanf:"log-level"`
	LogFormat LogFormat  `koanf:"log-format"`
}

// Advertised returns the HOST:PORT at which other nodes reach the node.
func (s Settings) Advertised() string { return cmp.Or(s.PeerAdvertise, s.PeerAddress) }

// Node returns the settings as a configuration of a node. The caller sets Pack,
// Extractor, Scorer and Log.
func (s Settings) Node() node.Config {
	if s.JobSlots == 0 && s.Workers > 0 {
		s.JobSlots = max(1, s.Workers/2)
	}
	backupEvery := s.BackupEvery
	if s.BackupTo == "" {
		backupEvery = 0
	}
	health, canonical := httpapi.HealthSigned, sigv4.Tolerant
	if s.Health == HealthOpen {
		health = httpapi.HealthOpen
	}
	pages := httpapi.ConsoleOn
	if s.Console == ConsoleOff {
		pages = httpapi.ConsoleOff
	}
	if s.SignatureForms == FormsStrict {
		canonical = sigv4.Strict
	}
	return node.Config{
		Health: health, Console: pages, Canonical: canonical, MustSign: s.MustSign, BodyBytes: s.BodyLimit << 20,
		Name: s.Name, Zone: s.Zone, Dir: s.Dir, Away: s.RebuildAfter,
		PeerAddress: s.PeerAddress, PeerAdvertise: s.PeerAdvertise,
		PublicAddress: s.PublicAddress, PublicURL: s.PublicURL,
		AdminAddress: s.AdminAddress,
		Seeds:        s.Seeds, Expect: s.Expect, Shards: s.Shards, Replicas: s.Replicas,
		Certificates: s.Certificates, ClusterKeyFile: s.ClusterKey, GossipKeyFile: s.GossipKey, CredentialsDir: s.CredentialsDir,
		ClusterKeyCommand: s.ClusterKeyCommand, GossipKeyCommand: s.GossipKeyCommand,
		Bucket: s.Bucket, JobSlots: s.JobSlots, Memory: s.Memory << 20, DiskReserve: s.DiskReserve << 20,
		BackupTo: s.BackupTo, BackupEvery: backupEvery, BackupKeep: s.BackupKeep,
		Region: s.Region, CORS: s.CORS,
		TracesTo: s.TracesTo, TracesRatio: s.TracesRatio,
		TenantRate:      httpapi.Rate{PerSecond: s.TenantRate, Burst: s.TenantBurst},
		ApplicationRate: httpapi.Rate{PerSecond: s.ApplicationRate, Burst: s.ApplicationBurst},
		Timing:          raftfsm.Timing{Heartbeat: s.Heartbeat, Election: s.Election, Lease: s.Lease, Stall: s.Stall},
	}
}

// check returns Problems for all settings that are missing or wrong, or nil.
func (s Settings) check() error {
	var wrong Problems
	for _, need := range []struct{ value, name, what string }{
		{s.Dir, "dir", "the node's data directory"},
		{s.Certificates, "certificates", "the folder with the node's certificates (facet certs issue makes one)"},
	} {
		if need.value == "" {
			wrong.add(fmt.Errorf("--%s is needed: %s", need.name, need.what))
		}
	}
	wrong.add(s.checkKeys())
	wrong.add(s.checkRates())
	wrong.add(s.checkRequests())
	wrong.add(s.checkAddresses())
	wrong.add(s.checkCluster())
	for _, c := range []struct {
		bad     bool
		problem string
	}{
		{s.ONNXRuntimeSHA256 != "" && !sha256Form.MatchString(s.ONNXRuntimeSHA256), "--onnxruntime-sha256 is 64 hexadecimal digits in lower case, as sha256sum prints them"},
		{s.Workers < 0, "--workers can't be negative"},
		{s.RebuildAfter < 0, "--rebuild-after can't be negative"},
		{s.DiskReserve < 0 || s.DiskReserve > memoryMax, fmt.Sprintf("--disk-reserve must be 0 to %d MiB", memoryMax)},
		{s.Memory < 0 || s.Memory > memoryMax, fmt.Sprintf("--memory must be 0 to %d MiB", memoryMax)},
		{s.JobSlots < 0 || s.JobSlots > jobSlotsMax, fmt.Sprintf("--job-slots must be 0 to %d", jobSlotsMax)},
		{!(s.TracesRatio >= 0 && s.TracesRatio <= 1), "--traces-ratio is a share of requests, 0 to 1"}, // NaN, too
		{s.LogFormat != LogAuto && s.LogFormat != LogText && s.LogFormat != LogJSON, fmt.Sprintf("--log-format is auto, text or json, not %q", string(s.LogFormat))},
	} {
		if c.bad {
			wrong.add(errors.New(c.problem))
		}
	}
	return wrong.err()
}

// checkRates checks the rates of requests.
func (s Settings) checkRates() error {
	var wrong Problems
	for _, rate := range []struct {
		name      string
		perSecond float64
		burst     int
	}{{"rate-tenant", s.TenantRate, s.TenantBurst}, {"rate-application", s.ApplicationRate, s.ApplicationBurst}} {
		switch {
		case !(rate.perSecond >= 0) || math.IsInf(rate.perSecond, 1): // also false for NaN
			wrong.add(fmt.Errorf("--%s is a number of requests per second, or 0 for no bound", rate.name))
		case rate.burst < 0 || rate.burst > math.MaxInt32:
			wrong.add(fmt.Errorf("--%s-burst must be 0 to %d", rate.name, math.MaxInt32))
		case rate.burst > 0 && rate.perSecond == 0:
			wrong.add(fmt.Errorf("--%s-burst bounds nothing without --%s", rate.name, rate.name))
		}
	}
	return wrong.err()
}

// sha256Form matches a SHA-256 in hexadecimal digits.
var sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)

// headerName matches the name of a header in lower case.
var headerName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// checkRequests checks the settings of what clients may send.
func (s Settings) checkRequests() error {
	var wrong Problems
	for _, c := range []struct {
		bad     bool
		problem string
	}{
		{s.Health != HealthSigned && s.Health != HealthOpen, fmt.Sprintf("--health is signed or open, not %q", string(s.Health))},
		{s.Console != ConsoleOn && s.Console != ConsoleOff, fmt.Sprintf("--console is on or off, not %q", string(s.Console))},
		{s.SignatureForms != FormsTolerant && s.SignatureForms != FormsStrict, fmt.Sprintf("--signature-forms is tolerant or strict, not %q", string(s.SignatureForms))},
		{s.BodyLimit < 1 || s.BodyLimit > bodyLimitMax, fmt.Sprintf("--body-limit must be 1 to %d MiB", bodyLimitMax)},
		{len(s.MustSign) > mustSignMax, fmt.Sprintf("--must-sign names at most %d headers", mustSignMax)},
	} {
		if c.bad {
			wrong.add(errors.New(c.problem))
		}
	}
	for _, name := range s.MustSign {
		if !headerName.MatchString(name) {
			wrong.add(fmt.Errorf("--must-sign names headers in lower case, not %q", name))
		}
	}
	return wrong.err()
}

// Assets are the files that set-up installs beside facet.
type Assets struct {
	Models      string // a folder with a pack, or with packs
	ONNXRuntime string // the shared library
	SHA256      string // of another library than set-up's
	Photos      string // sample photos; the service needs none
}

// AssetsDefault looks beside the running binary: bin/facet finds ../assets.
func AssetsDefault() Assets {
	root := "assets"
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		root = filepath.Join(filepath.Dir(filepath.Dir(exe)), "assets")
	}
	return Assets{
		Models:      filepath.Join(root, "packs"),
		ONNXRuntime: filepath.Join(root, "lib", libraryName()),
		Photos:      filepath.Join(root, "photos"),
	}
}

func libraryName() string {
	if runtime.GOOS == "darwin" {
		return "libonnxruntime.dylib"
	}
	return "libonnxruntime.so"
}
