package reviews

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/shard/job"
	"facet/shard/seal"
)

const (
	// caseWait is how long a verification waits for its case.
	caseWait    = 2 * time.Second
	purposeCase = "case"
	probeLabel  = "facet probe 1"
)

// InReview reports whether a score is in the review band of an application.
func InReview(app *metafsm.Application, score, threshold int) bool {
	return app.ReviewThreshold > 0 && score >= app.ReviewThreshold && score < threshold
}

// ProbeName returns what stands for a probe in a case: part of a MAC of its template with the gallery's key.
func ProbeName(key *seal.Key, g metafsm.Gallery, t engine.Template) (name [16]byte) {
	b := append([]byte(probeLabel), g.ID.UUID[:]...)
	for _, v := range t {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	defer clear(b)
	mac := key.MAC(b)
	copy(name[:], mac[:])
	return name
}

// checkReference returns an error if a reference is an external id of the gallery: both photo links of the case would
// then show the enrolled photo.
func (r *CaseRequests) checkReference(ctx context.Context, g cluster.Gallery, reference string) error {
	if reference == "" {
		return nil
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return err
	}
	switch _, _, err := r.claims.Find(ctx, claims.NameOf(g, key, reference)); {
	case err == nil:
		return router.Errorf(router.InvalidRequest, "", "the reference is the externalId of a subject; it must name the photo that was sent")
	case router.KindOf(err) == router.NotFound:
		return nil
	default:
		return err
	}
}

// Doubt returns the error of a verification in the review band, and opens a case for it. A case that can't
// be opened is counted; the answer stays the same. Without its intent no case is opened. The error is InvalidRequest
// if the reference is an external id.
func (r *CaseRequests) Doubt(ctx context.Context, g cluster.Gallery, app metafsm.Application, c job.Case, d *router.Doubt) (opened id.UUID, err error) {
	refused := &router.Error{
		Kind: router.NotVerified, Reason: router.ReasonDoubtful, Score: c.Score,
		Message: "the subject was not verified: the score is in the review band below the threshold",
	}
	c.ID = id.Derive(g.IDKey[:], purposeCase, d.Operation, g.ShardIDs[0])
	c.Application, c.Threshold, c.Reference = app.ID, app.VerifyThreshold, d.Reference
	c.Needed = app.ReviewVerdicts
	wait, cancel := context.WithTimeout(ctx, caseWait)
	defer cancel()
	var a openCaseAnswer
	err = r.checkReference(wait, g, d.Reference)
	if router.KindOf(err) == router.InvalidRequest {
		return id.UUID{}, err
	}
	if err == nil {
		if err := d.Opens(c.ID); err != nil {
			return id.UUID{}, err
		}
		a, err = calls.CallLeader(wait, r.cluster.Calls, caseOpen, g.ShardIDs[0], openCaseQuery{
			Name: casesName(g), Case: c, Days: app.ReviewDays, Share: admission.JobShare(r.cluster, g.Tenant),
		})
	}
	if err != nil || a.Case.IsZero() {
		r.work.dropped.Add(1)
	}
	if err != nil {
		r.cluster.Log.WarnContext(ctx, "no case was opened for a doubtful verification", "gallery", g.ID, "err", err)
	}
	return a.Case, refused
}

func casesName(g cluster.Gallery) shardfsm.JobName {
	return router.ItemsName(g.Gallery, job.Cases, g.ShardIDs[0])
}

// reviewed returns the gallery of an access.
func (r *CaseRequests) reviewed(access router.Access) (cluster.Gallery, error) {
	g, _, err := r.cluster.Of(access)
	return g, err
}

// Cases returns a page of the cases of a gallery.
func (r *CaseRequests) Cases(ctx context.Context, access router.Access, q router.CaseQuery) (router.CasePage, error) {
	g, err := r.reviewed(access)
	if err != nil {
		return router.CasePage{}, err
	}
	query := listCasesQuery{Name: casesName(g), Filter: q.Filter, Length: q.Length}
	if q.After != "" {
		if query.After, err = readCaseCursor(query.Name.Batch, q.After); err != nil {
			return router.CasePage{}, err
		}
	}
	a, err := calls.CallLeader(ctx, r.cluster.Calls, caseList, g.ShardIDs[0], query)
	if err != nil {
		return router.CasePage{}, err
	}
	page := router.CasePage{Total: a.Total, PhotoLink: g.PhotoLink}
	if a.More && len(a.Cases) > 0 {
		page.Next = caseCursor(query.Name.Batch, placeOf(a.Cases[len(a.Cases)-1]))
	}
	page.Cases, err = r.present(ctx, g, a.Cases)
	page.Cases = slices.DeleteFunc(page.Cases, func(c router.Case) bool { return !admits(q.Filter, c.State) })
	return page, err
}

// Case returns one case. The error is NotFound if there is no such case.
func (r *CaseRequests) Case(ctx context.Context, access router.Access, caseID id.UUID) (router.Case, error) {
	g, err := r.reviewed(access)
	if err != nil {
		return router.Case{}, err
	}
	a, err := calls.CallLeader(ctx, r.cluster.Calls, caseList, g.ShardIDs[0], listCasesQuery{Name: casesName(g), Only: caseID, Length: 1})
	if err != nil {
		return router.Case{}, err
	}
	return r.presentOne(ctx, g, a.Cases)
}

// Decide adds a verdict to a case and returns the case. The same verdict of the same holder has no further
// effect. The error is NotFound if there is no such case, and InvalidRequest if the case is closed, the holder
// has said otherwise, or two people decide and the holder has no name.
func (r *CaseRequests) Decide(ctx context.Context, access router.Access, d router.Decision) (router.Case, error) {
	found, err := r.Case(ctx, access, d.Case)
	if err == nil && found.State == job.CaseErased { // perhaps a moment ago
		err = caseClosed(&found.Case)
	}
	if err != nil {
		return router.Case{}, err
	}
	g, err := r.reviewed(access)
	if err != nil {
		return router.Case{}, err
	}
	a, err := calls.CallLeader(ctx, r.cluster.Calls, caseDecide, g.ShardIDs[0], decideQuery{
		Name: casesName(g), Case: d.Case, Verdict: job.Verdict{Same: d.Same, Holder: d.Holder}, Share: admission.JobShare(r.cluster, g.Tenant),
	})
	if err != nil {
		return router.Case{}, err
	}
	return r.presentOne(ctx, g, []job.Case{a})
}

// presentOne returns the only case of a list as clients see it.
func (r *CaseRequests) presentOne(ctx context.Context, g cluster.Gallery, list []job.Case) (router.Case, error) {
	if len(list) == 0 {
		return router.Case{}, caseNotFound()
	}
	shown, err := r.present(ctx, g, list[:1])
	if err != nil {
		return router.Case{}, err
	}
	return shown[0], nil
}

// present returns cases with the notes of their subjects. A case whose subject is gone is erased.
func (r *CaseRequests) present(ctx context.Context, g cluster.Gallery, list []job.Case) ([]router.Case, error) {
	var subjects []id.Subject
	for _, c := range list {
		if !c.Subject.IsZero() {
			subjects = append(subjects, c.Subject)
		}
	}
	there, err := lookup.Present(ctx, r.cluster, g, subjects, true)
	if err != nil {
		return nil, err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return nil, err
	}
	shown := make([]router.Case, len(list))
	for i, c := range list {
		shown[i] = router.Case{Case: c, PhotoLink: g.PhotoLink}
		noted, ok := there[c.Subject]
		switch {
		case c.State == job.CaseErased:
		case !ok:
			shown[i].Case = c.Erased(time.Now().UnixMilli())
		default:
			if shown[i].Note, err = g.OpenNote(key, c.Subject, noted); err != nil {
				return nil, err
			}
		}
	}
	return shown, nil
}

// A cursor of cases has a version and the place of the last case of a page. Bytes of a hash detect a mistyped
// cursor, and one of another gallery.
const (
	caseCursorVersion = 1
	caseCursorBytes   = 36
)

func caseCursor(of id.Batch, p casePlace) string {
	b := binary.BigEndian.AppendUint64([]byte{caseCursorVersion}, uint64(p.Created))
	b = append(b, p.Case[:]...)
	h := sha256.New()
	h.Write([]byte("facet cases 1"))
	h.Write(of.UUID[:])
	h.Write(b)
	return base64.RawURLEncoding.EncodeToString(append(b, h.Sum(nil)[:caseCursorBytes-len(b)]...))
}

func readCaseCursor(of id.Batch, text string) (p casePlace, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(b) == caseCursorBytes {
		p.Created = int64(binary.BigEndian.Uint64(b[1:]))
		copy(p.Case[:], b[9:])
	}
	if caseCursor(of, p) != text {
		return p, router.Errorf(router.InvalidRequest, router.ReasonUnknownCursor, "the cursor in after is not one of a list of cases; read the list from its start")
	}
	return p, nil
}
