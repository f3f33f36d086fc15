package node

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"facet/engine/score"
	"facet/node/bucket"
	"facet/node/httpapi"
	"facet/node/sigv4"
	"facet/node/transport"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// AwayDefault is how long a node may be missed before its replicas are made anew
// elsewhere.
const AwayDefault = 10 * time.Minute

// CheckDefault is how often the replicas of a group at rest are compared.
const CheckDefault = 10 * time.Minute

// Limits of a cluster's shape.
const (
	shardsMax   = 64
	replicasMax = 5
)

// Config is what a node is told at its start. Addresses are host:port.
type Config struct {
	// Name is shown to operators: a host's name, say.
	Name string
	// Zone is the failure domain: replicas of a shard lie in as many as possible.
	// Nodes of an empty zone share it with nobody.
	Zone string
	// Dir is the data directory. It is made when missing.
	Dir string

	// PeerAddress is listened on for other nodes, TCP and UDP; PeerAdvertise is how
	// they reach it (PeerAddress when empty).
	PeerAddress, PeerAdvertise string
	// PublicAddress is listened on for HTTPS; PublicURL is how clients reach it,
	// without a slash at its end (https://PublicAddress when empty).
	PublicAddress, PublicURL string
	// AdminAddress is listened on for operators: loopback unless there is a reason.
	AdminAddress string

	// Seeds are peer addresses of nodes to meet; a node's own address among them is
	// no harm.
	Seeds []string
	// Expect is how many nodes found the cluster together. It is not needed once
	// the cluster is founded.
	Expect int
	// Shards and Replicas are the shape of a cluster that is founded now.
	Shards, Replicas int
	// SlotsPerShard is the capacity for which a gallery gets one more shard; 0 is
	// metafsm.SlotsPerShard. It counts for a cluster that is founded now.
	SlotsPerShard int

	// Away is how long a node may be missed before its replicas are made anew on
	// others; 0 is AwayDefault.
	Away time.Duration

	// Certificates is the folder with ca.pem, node.pem, node.key, server.pem and
	// server.key.
	Certificates string
	// ClusterKeyFile holds the 32 bytes (64 hexadecimal digits) that wrap every
	// data key, GossipKeyFile those that encrypt gossip. Both are the same on all
	// nodes and stay outside Dir.
	ClusterKeyFile, GossipKeyFile string

	// Pack is the identity of the model pack that Extractor runs. A cluster keeps
	// to the one that it was founded with.
	Pack string
	// Extractor turns images into faces.
	Extractor router.Extractor
	// Table turns the cosine of two templates into a score; it belongs to the pack.
	Table *score.Table
	// Spectrum is the share of the squared norm of templates that each of their numbers
	// has, as the pack tells; nil if it does not. It changes the speed of searches only.
	Spectrum []float64
	// SearchMiss is the probability with which a search may lose a hit, for its speed; 0, the
	// default, is never. Then the spectrum is of no use.
	SearchMiss float64

	// Region is in the scope of request signatures.
	Region string
	// CORS are the origins whose pages may call the interface; none is off.
	CORS []string
	// TenantRate bounds the requests of each tenant to this node, ApplicationRate
	// those with the API keys of each application. Zero is no bound.
	TenantRate, ApplicationRate httpapi.Rate

	// Bucket is the URL of the object store that bulk registrations read, see package
	// bucket; empty is none, and then there are no bulk registrations.
	Bucket string
	// JobSlots is how many files of jobs are worked on at once; 0 is half of the
	// processors.
	JobSlots int

	// BackupTo is the URL of a folder to which meta's leader makes a backup each
	// BackupEvery, of which the newest BackupKeep stay; empty is none.
	BackupTo    string
	BackupEvery time.Duration
	BackupKeep  int

	// EraseWithin is the time after which nothing that was erased is left in Dir of a
	// running node; 0 is raftfsm's.
	EraseWithin time.Duration

	// Memory is how many bytes events may take on this node, by an estimate; beyond it
	// registrations are refused. 0 is three quarters of the machine's memory or of what
	// its control group permits.
	Memory int64

	// DiskReserve is how many bytes of Dir's file system stay free: below it
	// registrations are refused. 0 is 5 % of it, at least 1 GiB.
	DiskReserve int64

	// CheckEvery is how often the replicas of a group at rest are compared; those of a
	// busy one are after every 1,000 entries, too. 0 is CheckDefault.
	CheckEvery time.Duration

	// Level is what this node says that it knows; 0 is metafsm.Level, and anything else
	// is for tests of clusters of several versions.
	Level uint32

	// Timing is of the Raft groups; zero fields take the defaults.
	Timing raftfsm.Timing
	// Network is the machine's own when nil.
	Network transport.Network
	Log     *slog.Logger
}

// SearchMissProbable is the SearchMiss of the setting search-bound: probable.
const SearchMissProbable = 5e-10

// level is what this node knows (metafsm.Level).
func (c Config) level() uint32 {
	if c.Level == 0 {
		return metafsm.Level
	}
	return c.Level
}

// complete fills what was left empty and refuses what can't work.
func (c Config) complete() (Config, error) {
	if c.Network == nil {
		c.Network = transport.OS{}
	}
	if c.PeerAdvertise == "" {
		c.PeerAdvertise = c.PeerAddress
	}
	if c.PublicURL == "" {
		c.PublicURL = "https://" + c.PublicAddress
	}
	if c.Away == 0 {
		c.Away = AwayDefault
	}
	if c.CheckEvery == 0 {
		c.CheckEvery = CheckDefault
	}
	if c.Region == "" {
		c.Region = sigv4.RegionDefault
	}
	switch {
	case c.Dir == "":
		return c, errors.New("node: a data directory is needed")
	case c.Log == nil || c.Extractor == nil || c.Table == nil || c.Pack == "":
		panic("bug: a node needs a logger, an extractor, a score table and a pack")
	case c.Expect < 0 || c.Shards < 1 || c.Shards > shardsMax:
		return c, fmt.Errorf("node: shards must be 1 to %d, and expect not negative", shardsMax)
	case !(c.SearchMiss >= 0):
		return c, errors.New("node: a search can't lose hits with a probability below 0")
	case c.CheckEvery < 0:
		return c, errors.New("node: the time between two checks must not be negative")
	case c.DiskReserve < 0:
		return c, errors.New("node: the disk's reserve must not be negative")
	case c.Replicas < 1 || c.Replicas > replicasMax:
		return c, fmt.Errorf("node: replicas must be 1 to %d", replicasMax)
	}
	if err := c.checkBackup(); err != nil {
		return c, err
	}
	for _, f := range []string{c.ClusterKeyFile, c.GossipKeyFile} {
		inside, err := filepath.Rel(c.Dir, f)
		if err == nil && filepath.IsLocal(inside) {
			return c, fmt.Errorf("node: key file %s must lie outside the data directory", filepath.Base(f))
		}
	}
	return c, nil
}

// checkBackup refuses a schedule that can't be meant.
func (c Config) checkBackup() error {
	switch {
	case c.BackupTo == "" && c.BackupEvery == 0:
		return nil
	case c.BackupTo == "" || c.BackupEvery <= 0 || c.BackupKeep < 1:
		return errors.New("node: backups by the clock need a URL, a time between them, and at least one to keep")
	}
	if err := bucket.Check(c.BackupTo); err != nil {
		return fmt.Errorf("node: backups by the clock: %w", err)
	}
	return nil
}
