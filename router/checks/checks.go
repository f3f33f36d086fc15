// Package checks reports what a list of registrations would do. One node keeps the rows of a check
// in memory.
package checks

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/faces"
	"facet/router/listcheck"
	"facet/router/searches"
)

// A check reports what a list of registrations would do, and does nothing. One node keeps the
// templates of its rows in memory (package listcheck): the node that began the check, whose
// member the check's id names. Any node takes a row, extracts the face, and asks that node for
// the rows that show the same person and the shards for enrolled ones.
const (
	// checkTries is how often the node of a check is asked. After that the check counts as lost.
	checkTries = 3
	// checkWait is how long one try may take.
	checkWait = 3 * time.Second
	// checkTagBytes is how many bytes of a check's id name its member.
	checkTagBytes = 6
)

// CheckRequests serves checks of lists.
type CheckRequests struct {
	cluster  *cluster.Cluster
	faces    *faces.FaceRequests
	searches *searches.SearchRequests
	claims   *claims.ClaimRequests
	checks   *listcheck.Checks
	memory   router.Memory
}

// Close forgets the checks.
func (r *CheckRequests) Close() error { return r.checks.Close() }

// CheckMemory returns the bytes that checks take on this node.
func (r *CheckRequests) CheckMemory() int64 { return r.checks.Bytes() }

// BeginCheck starts a check on this node and returns its id.
func (r *CheckRequests) BeginCheck(_ context.Context, access router.Access) (id.UUID, error) {
	if _, _, err := r.cluster.Of(access); err != nil {
		return id.UUID{}, err
	}
	name := cluster.RandomID()
	copy(name[:], checkTag(r.cluster.Peers.Self()))
	return name, r.checks.Begin(name, ownerOf(access))
}

func ownerOf(a router.Access) listcheck.Owner {
	return listcheck.Owner{Tenant: a.Tenant, Application: a.Application}
}

// checkTag returns what names a member in the ids of its checks.
func checkTag(m id.Member) []byte {
	sum := sha256.Sum256([]byte("facet check " + m))
	return sum[:checkTagBytes]
}

// CheckRow returns what a registration would do. The errors are those of the registration.
func (r *CheckRequests) CheckRow(ctx context.Context, c router.CheckRow) (router.CheckedRow, error) {
	g, app, err := r.cluster.Of(c.Access)
	if err != nil {
		return router.CheckedRow{}, err
	}
	if _, err := admission.StoredExpiry(r.cluster.Clock, c.Expires); err != nil {
		return router.CheckedRow{}, err
	}
	if _, err := cluster.TagIdentities(ctx, r.cluster, g, c.Tags); err != nil {
		return router.CheckedRow{}, err
	}
	face, err := r.faces.Enrolled(ctx, c.Image, app)
	if err != nil {
		return router.CheckedRow{}, err
	}
	out := router.CheckedRow{
		Attributes: face.Attributes, Ignored: face.Ignored, Threshold: app.GuardThreshold, Searched: router.Searched{Generation: g.Generation, Model: face.Model, Receipt: nil},
	}
	if out.Rows, err = r.compareRow(ctx, c, face.Face, app.GuardThreshold); err != nil {
		return router.CheckedRow{}, err
	}
	if err = r.searchRow(ctx, c, g, face.Face, &out); err != nil || c.Note.ExternalID == "" {
		return out, err
	}
	out.Known, err = r.claims.SubjectWith(ctx, c.Access, c.Note.ExternalID)
	if router.KindOf(err) == router.NotFound {
		err = nil
	}
	return out, err
}

// searchRow finds the enrolled subjects that the face of a row shows.
func (r *CheckRequests) searchRow(ctx context.Context, c router.CheckRow, g cluster.Gallery, face engine.Face, out *router.CheckedRow) error {
	lists, receipt, err := r.searches.Scatter(ctx, g, searches.SearchQuery{
		Probe: face.Template, Model: face.Model, Threshold: out.Threshold, Limit: router.SearchLimitDefault, BySubject: true, Notes: true, Receipt: c.Audited,
	})
	if err != nil {
		return err
	}
	hits := searches.BestHits(lists, router.SearchLimitDefault)
	out.Candidates, out.Receipt = searches.CandidatesOf(hits), receipt
	return r.searches.OpenCandidates(g, out.Candidates, searches.NotesOf(hits))
}

// compareRow adds a row to its check and returns the rows that show the same person.
func (r *CheckRequests) compareRow(ctx context.Context, c router.CheckRow, face engine.Face, threshold int) ([]listcheck.Double, error) {
	return atCheck(ctx, r, c.Check, checkCompare, checkQuery{
		Check: c.Check, Owner: ownerOf(c.Access),
		Row: listcheck.Row{Number: uint32(c.Row), Template: face.Template, Model: face.Model, Threshold: threshold},
	})
}

// EndCheck ends a check. Its templates are zeroed. The error is NotFound if there is none.
func (r *CheckRequests) EndCheck(ctx context.Context, access router.Access, check id.UUID) error {
	if _, _, err := r.cluster.Of(access); err != nil {
		return err
	}
	_, err := atCheck(ctx, r, check, checkEnd, checkQuery{Check: check, Owner: ownerOf(access)})
	return err
}

// atCheck carries out m on the node that keeps a check. A node that does not answer has lost it.
func atCheck[A any](ctx context.Context, r *CheckRequests, check id.UUID, m calls.Method[*CheckRequests, checkQuery, A], q checkQuery) (a A, err error) {
	for _, member := range r.cluster.Groups.Members(id.Meta) {
		if string(checkTag(member)) != string(check[:checkTagBytes]) {
			continue
		}
		for range checkTries {
			try, cancel := context.WithTimeout(ctx, checkWait)
			a, err = calls.CallAt(try, r.cluster.Calls, m, id.Meta, member, q)
			cancel()
			if err == nil || ctx.Err() != nil || !calls.Again(err) && !errors.Is(err, context.DeadlineExceeded) {
				return a, err
			}
		}
	}
	return a, listcheck.Unknown()
}

// checkQuery is for the node that keeps a check.
type checkQuery struct {
	Check id.UUID         `cbor:"1,keyasint"`
	Owner listcheck.Owner `cbor:"2,keyasint"`
	Row   listcheck.Row   `cbor:"3,keyasint,omitzero"`
}

var checkCompare = calls.NewMethod("check.compare", func(_ context.Context, r *CheckRequests, _ id.Shard, q checkQuery) ([]listcheck.Double, error) {
	if r.memory != nil && r.memory.Full() {
		return nil, &router.Error{Kind: router.Insufficient, Message: "the service has no memory or disk for more faces", RetryAfter: admission.MemoryRetry}
	}
	return r.checks.Compare(q.Check, q.Owner, q.Row)
})

var checkEnd = calls.NewMethod("check.end", func(_ context.Context, r *CheckRequests, _ id.Shard, q checkQuery) (struct{}, error) {
	return struct{}{}, r.checks.End(q.Check, q.Owner)
})
