// Package routing assembles the parts that carry out requests to a Router, which a node opens and
// closes.
//
// Each part has its own package and state, and adds the methods that it carries out for other
// nodes. They share a cluster.Cluster.
package routing

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/trace"
	"facet/router"
	"facet/router/admission"
	"facet/router/auditlogs"
	"facet/router/bulk"
	"facet/router/checks"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/duplicates"
	"facet/router/faces"
	"facet/router/galleries"
	"facet/router/lists"
	"facet/router/lookup"
	"facet/router/merges"
	"facet/router/reviews"
	"facet/router/searches"
	"facet/router/subjects"
	"facet/router/tenants"
	"facet/router/verifications"
	"facet/shard/seal"
)

// Config contains the parts that a Router uses.
type Config struct {
	Groups    router.Groups
	Peers     router.Peers
	Extractor router.Extractor
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
	Memory router.Memory
	// Tracer continues the traces of other nodes. It may be nil.
	Tracer *trace.Tracer
	// Meter measures searches. It may be nil.
	Meter router.Meter
	// Clock compares this node's clock with the others'. nil trusts the system's clock.
	Clock router.Clock
	// Acted receives what the cluster has done by itself. It must be quick. nil forgets it.
	Acted func(router.Act)
}

// Router carries out requests on the whole cluster. It embeds one type for each
// kind of request. It is safe for concurrent use. The rounds that catch up with
// meta or with a leader may outlast the call that started them, because later
// callers wait for them, and so may reads that another replica has answered first. No
// other goroutine outlasts its call. Close waits for both.
type Router struct {
	cluster *cluster.Cluster
	*tenants.TenantRequests
	*galleries.GalleryRequests
	*faces.FaceRequests
	*subjects.SubjectRequests
	*merges.MergeRequests
	*claims.ClaimRequests
	*lists.ListRequests
	*searches.SearchRequests
	*bulk.JobRequests
	*checks.CheckRequests
	*duplicates.DuplicateRequests
	*verifications.VerificationRequests
	*auditlogs.AuditRequests
	*reviews.CaseRequests
}

// New returns a Router.
func New(cfg Config) *Router {
	c := cluster.New(cluster.Config{
		Groups: cfg.Groups, Peers: cfg.Peers, Master: cfg.Master, Log: cfg.Log, Tracer: cfg.Tracer, Meter: cfg.Meter, Clock: cfg.Clock, Acted: cfg.Acted,
	})
	lookup.Serve(c)
	admission.Serve(c)
	r := &Router{
		cluster:         c,
		TenantRequests:  tenants.New(c),
		GalleryRequests: galleries.New(c),
		FaceRequests:    faces.New(c, cfg.Extractor, cfg.Table, cfg.Turn),
		ClaimRequests:   claims.New(c),
		AuditRequests:   auditlogs.New(c),
	}
	r.ListRequests = lists.New(c, r.ClaimRequests)
	r.SearchRequests = searches.New(c, r.FaceRequests, cfg.Meter)
	r.SubjectRequests = subjects.New(c, r.FaceRequests, r.ClaimRequests, cfg.Memory)
	r.MergeRequests = merges.New(c, r.SubjectRequests, r.ClaimRequests)
	r.JobRequests = bulk.New(c, r.SubjectRequests, r.FaceRequests, cfg.Bulk)
	r.DuplicateRequests = duplicates.New(c, r.JobRequests)
	r.CaseRequests = reviews.New(c, r.ClaimRequests)
	r.VerificationRequests = verifications.New(c, r.FaceRequests, r.CaseRequests)
	r.CheckRequests = checks.New(c, r.FaceRequests, r.SearchRequests, r.ClaimRequests, cfg.Table, cfg.Memory)
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
	return errors.Join(r.RedactPairs(ctx), r.RedactCases(ctx))
}

// Close waits for the reads and rounds that are still running and forgets the checks. The
// caller makes no further calls.
func (r *Router) Close() error {
	r.cluster.Close()
	return r.CheckRequests.Close()
}

// Serve carries out a peer's request. calls.EncodeFault turns its error into bytes
// for the peer.
func (r *Router) Serve(ctx context.Context, name string, body []byte) ([]byte, error) {
	return r.cluster.Calls.Serve(ctx, name, body)
}
