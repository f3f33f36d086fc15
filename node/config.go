package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"facet/engine/score"
	"facet/node/bucket"
	"facet/node/httpapi"
	"facet/node/replicas"
	"facet/node/sigv4"
	"facet/node/transport"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// Defaults of Config.Away and Config.CheckEvery.
const (
	AwayDefault  = 10 * time.Minute
	CheckDefault = 10 * time.Minute
)

// Limits of a cluster's shape.
const (
	ShardsMax   = 64
	ReplicasMax = 5
)

// Config configures a node. Addresses are host:port.
type Config struct {
	// Name is shown to operators, for example the name of the host.
	Name string
	// Zone is the failure domain. The replicas of a shard lie in as many zones as possible.
	// A node with an empty zone shares it with no other.
	Zone string
	// Dir is the data directory. The node creates it when missing.
	Dir string

	// PeerAddress is the address of the port for other nodes, TCP and UDP. They reach it at
	// PeerAdvertise, which defaults to PeerAddress.
	PeerAddress, PeerAdvertise string
	// PublicAddress is the address of the HTTPS port. Clients reach it at PublicURL, which has
	// no trailing slash and defaults to https://PublicAddress.
	PublicAddress, PublicURL string
	// AdminAddress is the address of the port for operators, usually loopback.
	AdminAddress string

	// Seeds are peer addresses of nodes to call first. The node's own address among them
	// does no harm.
	Seeds []string
	// Expect is the number of nodes that found the cluster. A founded cluster does not need
	// it.
	Expect int
	// Shards, Replicas and SlotsPerShard are the shape of a new cluster. A gallery gets one
	// more shard for each SlotsPerShard of its size; 0 is metafsm.SlotsPerShard.
	Shards, Replicas, SlotsPerShard int

	// Away is how long a node may be missing before its replicas are rebuilt on others; 0
	// is AwayDefault.
	Away time.Duration

	// Certificates is the folder with ca.pem, node.pem, node.key, server.pem and
	// server.key.
	Certificates string
	// ClusterKeyFile has the keys that wrap every data key, GossipKeyFile those that encrypt
	// gossip: 64 hexadecimal digits each. Both files are the same on all nodes and lie
	// outside Dir. Files in CredentialsDir, the folder of systemd's credentials, are never
	// rewritten.
	ClusterKeyFile, GossipKeyFile, CredentialsDir string
	// ClusterKeyCommand and GossipKeyCommand print the keys, instead of the files: a program
	// and its arguments.
	ClusterKeyCommand, GossipKeyCommand []string

	// Pack is the identity of the model pack that Extractor runs. A cluster keeps the pack
	// with which it was founded.
	Pack string
	// Extractor turns images into faces.
	Extractor router.Extractor
	// Table turns the cosine of two templates into a score. It belongs to the pack.
	Table *score.Table
	// Spectrum is a property of the pack: for each number of a template, its usual share of the
	// squared norm. It makes searches faster and changes no answer. nil means unknown.
	Spectrum []float64

	// Region is the region in the scope of request signatures.
	Region string
	// Health says whether health is answered without a signature, Console whether the web
	// console is served. Canonical lists the accepted
	// forms of signatures. MustSign names headers, in lower case, that have to be signed when
	// present. BodyBytes is the most bytes of a body; 0 is 20 MiB.
	Health    httpapi.HealthAccess
	Console   httpapi.ConsoleAccess
	Canonical sigv4.Canonical
	MustSign  []string
	BodyBytes int
	// CORS lists the origins whose pages may call the interface. An empty list allows none.
	CORS []string
	// TenantRate limits the requests of each tenant to this node that has no quota of its
	// own; zero is the default quota. ApplicationRate limits those with the API keys of each
	// application; zero is no limit.
	TenantRate, ApplicationRate httpapi.Rate

	// Bucket is the URL of the object store of bulk registrations (package bucket). Without a
	// Bucket there are no bulk registrations.
	Bucket string
	// JobSlots is the most files of jobs that are processed at once; 0 is half of the
	// processors.
	JobSlots int

	// BackupTo is the URL of the folder for scheduled backups. Without it no backup is
	// scheduled. Meta's leader makes a backup every BackupEvery and keeps the newest
	// BackupKeep.
	BackupTo    string
	BackupEvery time.Duration
	BackupKeep  int

	// TracesTo is the URL of the collector of traces (package tracing). Without it no request
	// is traced. TracesRatio is the share of requests that are sampled.
	TracesTo    string
	TracesRatio float64

	// EraseWithin is the time after which no erased data is left in Dir while the node runs;
	// 0 is raftfsm.EraseWithinDefault.
	EraseWithin time.Duration

	// CodesLeast is how many faces a segment has at least whose codes are kept on disk; 0 is
	// replicas.CodesLeast.
	CodesLeast int

	// Memory is the most bytes that events may take on this node, by an estimate. Beyond it
	// the node refuses registrations. 0 is three quarters of limits.SystemMemory.
	Memory int64

	// DiskReserve is how many bytes of Dir's file system stay free. With less the node
	// refuses registrations. 0 is 5 % of the file system, at least 1 GiB.
	DiskReserve int64

	// CheckEvery is how often the replicas of an idle group are compared; 0 is CheckDefault.
	// The replicas of a busy group are also compared after every 1,000 entries.
	CheckEvery time.Duration

	// Level is the highest level that this node claims to know; 0 is metafsm.Level. Tests set
	// it to run clusters of several versions.
	Level uint32

	// Wall returns the node's time; nil is time.Now. Tests set it to run nodes with wrong
	// clocks.
	Wall func() time.Time `json:"-"`

	// Timing is the timing of the Raft groups. Zero fields take the defaults.
	Timing raftfsm.Timing
	// Network is the network to listen and call on. nil is the machine's own.
	Network transport.Network
	Log     *slog.Logger

	// RecentLog returns the last lines of Log, and Settings the settings without secrets, for
	// administrators. Either may be nil.
	RecentLog func() []byte                  `json:"-"`
	Settings  func() (map[string]any, error) `json:"-"`
}

// complete fills empty fields with their defaults. It returns an error for values that can't
// work.
func (c Config) complete() (Config, error) {
	if c.Network == nil {
		c.Network = transport.OS{}
	}
	c.PeerAdvertise = cmp.Or(c.PeerAdvertise, c.PeerAddress)
	c.PublicURL = cmp.Or(c.PublicURL, "https://"+c.PublicAddress)
	c.CodesLeast = cmp.Or(c.CodesLeast, replicas.CodesLeast)
	c.Away, c.CheckEvery = cmp.Or(c.Away, AwayDefault), cmp.Or(c.CheckEvery, CheckDefault)
	c.Region, c.Level = cmp.Or(c.Region, sigv4.RegionDefault), cmp.Or(c.Level, metafsm.Level)
	switch {
	case c.Dir == "":
		return c, errors.New("node: a data directory is needed")
	case c.Log == nil || c.Extractor == nil || c.Table == nil || c.Pack == "":
		panic("bug: a node needs a logger, an extractor, a score table and a pack")
	case c.Expect < 0 || c.Shards < 1 || c.Shards > ShardsMax:
		return c, fmt.Errorf("node: shards must be 1 to %d, and expect not negative", ShardsMax)
	case c.CheckEvery < 0:
		return c, errors.New("node: the time between two checks must not be negative")
	case c.DiskReserve < 0:
		return c, errors.New("node: the disk's reserve must not be negative")
	case c.Replicas < 1 || c.Replicas > ReplicasMax:
		return c, fmt.Errorf("node: replicas must be 1 to %d", ReplicasMax)
	}
	if err := c.checkBackup(); err != nil {
		return c, err
	}
	for _, f := range []string{c.ClusterKeyFile, c.GossipKeyFile} {
		if f == "" {
			continue // a command prints the key
		}
		inside, err := filepath.Rel(c.Dir, f)
		if err == nil && filepath.IsLocal(inside) {
			return c, fmt.Errorf("node: key file %s must lie outside the data directory", filepath.Base(f))
		}
	}
	return c, nil
}

// checkBackup returns an error for an incomplete backup schedule.
func (c Config) checkBackup() error {
	switch {
	case c.BackupTo == "" && c.BackupEvery == 0:
		return nil
	case c.BackupTo == "" || c.BackupEvery <= 0 || c.BackupKeep < 1:
		return errors.New("node: scheduled backups need a URL, a time between them, and at least one to keep")
	}
	if err := bucket.Check(c.BackupTo); err != nil {
		return fmt.Errorf("node: scheduled backups: %w", err)
	}
	return nil
}
