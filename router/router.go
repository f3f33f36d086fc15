package router

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
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

// Groups are the Raft groups, as this node knows them.
type Groups interface {
	// Group gives the group's replica on this node.
	Group(id.Shard) (*raftfsm.Group, bool)
	// Meta gives meta's state machine; every node has one.
	Meta() *metafsm.Machine
	// Shard gives the state machine of a shard's replica on this node.
	Shard(id.Shard) (*shardfsm.Machine, bool)
	// Members gives the members that may hold the group, this node or not.
	Members(id.Shard) []id.Member
}

// Peers reaches other nodes.
type Peers = calls.Peers

// A method is one request between nodes, carried out by the Router of the node that
// leads the group, or has a replica of it.
type (
	method[Q, A any] = calls.Method[*Router, Q, A]
	handler          = calls.Handler[*Router]
)

// Config is what a Router works with.
type Config struct {
	Groups    Groups
	Peers     Peers
	Extractor Extractor
	Table     *score.Table
	Master    *seal.Master
	Log       *slog.Logger
	// Bulk tells that there is an object store, so that bulk registrations are taken.
	Bulk bool
	// Memory is asked before an event is added; nil has no end.
	Memory Memory
	// Meter is told of searches; nil tells nobody.
	Meter Meter
}

// Meter is told how long the parts of searches take. It must be quick.
type Meter interface {
	// Searched is told the stages of a whole search.
	Searched(extract, shards, merge time.Duration)
	// SearchedShard is told one shard's part on the replica that answered: how many
	// active events the slice had, and the time.
	SearchedShard(rows int, took time.Duration)
}

type noMeter struct{}

func (noMeter) Searched(_, _, _ time.Duration)   {}
func (noMeter) SearchedShard(int, time.Duration) {}

// Memory tells whether this node has memory for more events.
type Memory interface {
	// Full tells that there is none. It is asked often and must be quick.
	Full() bool
}

// Router carries out requests on the whole cluster. It only gathers the types that
// do so, one for each kind of thing a request is about. It is safe for concurrent
// use. Close waits for the one kind of goroutine that may outlast a call: a round
// of catching up, with meta or a leader, that later callers wait for.
type Router struct {
	*cluster
	*accessRequests
	*galleryRequests
	*tagRequests
	*faceRequests
	*subjectRequests
	*searchRequests
	*jobRequests
	memory Memory
}

// cluster is the cluster as each kind of request needs it: calls, meta as far as this
// node has caught up with it, and keys.
type cluster struct {
	groups Groups
	peers  Peers
	calls  *calls.Caller[*Router]
	master *seal.Master
	log    *slog.Logger
	keys   keys
	sync   calls.Rounds
	synced syncedAt

	followMu sync.Mutex // guards follows
	follows  map[id.Shard]*calls.Rounds
}

// accessRequests are about tenants, access keys and nodes.
type accessRequests struct {
	*cluster
	// keyChange is held by who changes access keys as meta's leader.
	keyChange chan struct{}
}

// galleryRequests are about galleries and applications.
type galleryRequests struct{ *cluster }

// tagRequests are about the tags of galleries.
type tagRequests struct{ *cluster }

// faceRequests are about images and single faces.
type faceRequests struct {
	*cluster
	extractor Extractor
	table     *score.Table
}

// subjectRequests are about subjects and their events.
type subjectRequests struct{ *faceRequests }

// searchRequests are searches.
type searchRequests struct {
	*faceRequests
	meter Meter
}

// jobRequests are about bulk registrations.
type jobRequests struct {
	*subjectRequests
	leases leases
	bulk   bool
}

// New returns a Router.
func New(cfg Config) *Router {
	c := &cluster{
		groups: cfg.Groups, peers: cfg.Peers, master: cfg.Master, log: cfg.Log, follows: map[id.Shard]*calls.Rounds{},
	}
	faces := &faceRequests{cluster: c, extractor: cfg.Extractor, table: cfg.Table}
	subjects := &subjectRequests{faces}
	r := &Router{
		cluster:         c,
		accessRequests:  &accessRequests{cluster: c, keyChange: make(chan struct{}, 1)},
		galleryRequests: &galleryRequests{c},
		tagRequests:     &tagRequests{c},
		faceRequests:    faces,
		subjectRequests: subjects,
		searchRequests:  &searchRequests{faceRequests: faces, meter: cfg.Meter},
		jobRequests:     &jobRequests{subjectRequests: subjects, bulk: cfg.Bulk},
		memory:          cfg.Memory,
	}
	if r.meter == nil {
		r.meter = noMeter{}
	}
	c.calls = calls.New(r, cfg.Groups, cfg.Peers, cfg.Log, handlers())
	c.sync.Run = c.syncMeta
	return r
}

// Close waits for what calls left running. No call may follow.
func (r *Router) Close() error {
	r.sync.Close()
	r.followMu.Lock()
	defer r.followMu.Unlock()
	for _, f := range r.follows {
		f.Close()
	}
	return nil
}

// Serve carries out a peer's request. Its error travels as calls.EncodeFault makes it.
func (r *Router) Serve(ctx context.Context, name string, body []byte) ([]byte, error) {
	return r.calls.Serve(ctx, name, body)
}
