package router

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/trace"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard/seal"
)

// Extractor turns an image into faces, largest first. *engine.Engine is one.
type Extractor interface {
	// Extract finds all faces.
	Extract(ctx context.Context, image []byte) ([]engine.Face, error)
	// ExtractLarge finds the largest face and those of at least share of its side,
	// which is quicker. A face has the same template either way.
	ExtractLarge(ctx context.Context, image []byte, share float32) ([]engine.Face, error)
}

// Groups finds the Raft groups that this node knows.
type Groups interface {
	// Group returns this node's replica of the group.
	Group(id.Shard) (*raftfsm.Group, bool)
	// Meta returns the state machine of meta. Every node has one.
	Meta() *metafsm.Machine
	// Shard returns the state machine of this node's replica of the shard.
	Shard(id.Shard) (*shardfsm.Machine, bool)
	// Members returns the members that may have a replica of the group, this node
	// included.
	Members(id.Shard) []id.Member
	// Out reports whether this node's replica of the group is out of service.
	Out(id.Shard) bool
}

// Peers reaches other nodes.
type Peers = calls.Peers

// A method is one request between nodes. The Router of the node that leads the
// group, or that has a replica of it, carries it out.
type method[Q, A any] = calls.Method[*cluster, Q, A]

// Config contains the parts that a Router uses.
type Config struct {
	Groups    Groups
	Peers     Peers
	Extractor Extractor
	// Turn waits for the turn of other work that takes the engine's processors, in the same order
	// as images. It returns engine.ErrBusy when the tenant's line is full. The caller ends the turn. nil
	// makes nobody wait.
	Turn   func(context.Context) (end func(), err error)
	Table  *score.Table
	Master *seal.Master
	Log    *slog.Logger
	// Bulk reports whether there is an object store. Without one, bulk
	// registrations are refused.
	Bulk bool
	// Memory is asked before an event is added. nil means that memory has no limit.
	Memory Memory
	// Tracer continues the traces of other nodes. It may be nil.
	Tracer *trace.Tracer
	// Meter measures searches. It may be nil.
	Meter Meter
	// Clock compares this node's clock with the others'. nil trusts the system's clock.
	Clock Clock
	// Acted receives what the cluster has done by itself. It must be quick. nil forgets it.
	Acted func(Act)
}

// Meter receives the times of the parts of a search, and counts hedges. Its methods must be quick.
type Meter interface {
	// Searched receives the times of the three stages of one search.
	Searched(extract, shards, merge time.Duration)
	// SearchedShard receives the part of one shard, on the replica that answered:
	// the number of active events there, and the time.
	SearchedShard(rows int, took time.Duration)
	calls.Meter
}

// Clock compares this node's clock with those of the other nodes.
type Clock interface {
	// Now returns the time for new writes. If most nodes contradict this node, it is
	// theirs.
	Now() time.Time
	// Trusted returns this node's time, and whether a majority of the nodes has about
	// the same.
	Trusted() (now time.Time, agrees bool)
}

// systemClock trusts the system's clock.
type systemClock struct{}

func (systemClock) Now() time.Time             { return time.Now() }
func (systemClock) Trusted() (time.Time, bool) { return time.Now(), true }

// Memory reports whether this node has memory for more events.
type Memory interface {
	// Full returns true when there is no memory left. It is called often and must
	// be quick.
	Full() bool
}

// Router carries out requests on the whole cluster. It embeds one type for each
// kind of request. It is safe for concurrent use. The rounds that catch up with
// meta or with a leader may outlast the call that started them, because later
// callers wait for them, and so may reads that another replica has answered first. No
// other goroutine outlasts its call. Close waits for both.
type Router struct {
	cluster *cluster
	*accessRequests
	*galleryRequests
	*faceRequests
	*subjectRequests
	*mergeRequests
	*claims
	*listRequests
	*searchRequests
	*jobRequests
	*checkRequests
	*duplicateRequests
	*verificationRequests
	*auditRequests
	*caseRequests
}

// cluster is the part that all kinds of requests share: calls to other nodes, this
// node's replica of meta, and keys.
type cluster struct {
	groups Groups
	peers  Peers
	calls  *calls.Caller
	master *seal.Master
	log    *slog.Logger
	keys   keys
	clock  Clock
	sync   calls.Rounds
	synced syncing
	acted  func(Act)

	followMu sync.Mutex // guards follows
	follows  map[id.Shard]*calls.Rounds
}

// accessRequests serves requests about tenants, access keys and nodes.
type accessRequests struct {
	cluster *cluster
	// keyChange has room for one: as the leader of meta, this node changes one
	// access key at a time.
	keyChange chan struct{}
}

// galleryRequests serves requests about galleries and applications.
type galleryRequests struct{ cluster *cluster }

// faceRequests serves requests about images and single faces.
type faceRequests struct {
	cluster   *cluster
	extractor Extractor
	turn      func(context.Context) (end func(), err error)
	table     *score.Table
}

// subjectRequests serves requests about subjects and their events.
type subjectRequests struct {
	cluster *cluster
	faces   *faceRequests
	claims  *claims
	memory  Memory
}

// listRequests serves the list of subjects.
type listRequests struct {
	cluster *cluster
	claims  *claims
}

// verificationRequests serves verifications.
type verificationRequests struct {
	cluster *cluster
	faces   *faceRequests
	reviews *caseRequests
}

// mergeRequests serves merges of subjects.
type mergeRequests struct {
	cluster  *cluster
	subjects *subjectRequests
	claims   *claims
}

// searchRequests serves searches.
type searchRequests struct {
	cluster *cluster
	faces   *faceRequests
	meter   Meter
	shares  sharing
}

// jobRequests serves bulk registrations.
type jobRequests struct {
	cluster  *cluster
	faces    *faceRequests
	subjects *subjectRequests
	leases   leases
	bulk     bool
}

// duplicateRequests serves comparisons of galleries with themselves.
type duplicateRequests struct {
	cluster *cluster
	jobs    *jobRequests
}

// New returns a Router.
func New(cfg Config) *Router {
	c := newCluster(clusterConfig{
		Groups: cfg.Groups, Peers: cfg.Peers, Master: cfg.Master, Log: cfg.Log, Tracer: cfg.Tracer, Meter: cfg.Meter, Clock: cfg.Clock, Acted: cfg.Acted,
	})
	serveLookups(c)
	serveRoom(c)
	r := &Router{
		cluster:         c,
		accessRequests:  newTenants(c),
		galleryRequests: newGalleries(c),
		faceRequests:    newFaces(c, cfg.Extractor, cfg.Table, cfg.Turn),
		claims:          newClaims(c),
		auditRequests:   newAuditLogs(c),
	}
	r.listRequests = newLists(c, r.claims)
	r.searchRequests = newSearches(c, r.faceRequests, cfg.Meter)
	r.subjectRequests = newSubjects(c, r.faceRequests, r.claims, cfg.Memory)
	r.mergeRequests = newMerges(c, r.subjectRequests, r.claims)
	r.jobRequests = newJobs(c, r.subjectRequests, r.faceRequests, cfg.Bulk)
	r.duplicateRequests = newDuplicates(c, r.jobRequests)
	r.caseRequests = newReviews(c, r.claims)
	r.verificationRequests = newVerifications(c, r.faceRequests, r.caseRequests)
	r.checkRequests = newChecks(c, r.faceRequests, r.searchRequests, r.claims, cfg.Table, cfg.Memory)
	return r
}

// SyncMeta waits until this node's replica of meta has every write that was
// acknowledged before the call. Concurrent callers share the work.
func (r *Router) SyncMeta(ctx context.Context) error { return r.cluster.SyncMeta(ctx) }

// SyncMetaSince is SyncMeta for a caller to whom a round that began after since is
// enough.
func (r *Router) SyncMetaSince(ctx context.Context, since time.Time) error {
	return r.cluster.SyncMetaSince(ctx, since)
}

// CatchUp waits until this node's replica of a shard has applied everything that
// its leader had committed at the call, or until ctx ends.
func (r *Router) CatchUp(ctx context.Context, group id.Shard) error {
	return r.cluster.CatchUp(ctx, group)
}

// Shards returns the numbers of all shards. Each may have work.
func (r *Router) Shards() []id.Shard { return r.cluster.Shards() }

// RedactDuplicates takes the pairs of subjects that are gone out of the reports, and out of the pairs of different
// subjects, and erases their cases, on the shards that this node leads. It also closes cases whose time is over. The
// next round of erasure of these shards removes them from the disks.
func (r *Router) RedactDuplicates(ctx context.Context) error {
	return errors.Join(r.redactPairs(ctx), r.redactCases(ctx))
}

// Close waits for the reads and rounds that are still running and forgets the checks. The
// caller makes no further calls.
func (r *Router) Close() error {
	r.cluster.Close()
	return r.checkRequests.Close()
}

// Serve carries out a peer's request. calls.EncodeFault turns its error into bytes
// for the peer.
func (r *Router) Serve(ctx context.Context, name string, body []byte) ([]byte, error) {
	return r.cluster.calls.Serve(ctx, name, body)
}
