package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard/job"
	"facet/shard/seal"
)

const (
	// bulkEntryBytes is the approximate size of a log entry with items of a job.
	bulkEntryBytes = 160 << 10
	// bulkFullRetry is the Retry-After of a job that is refused because too many
	// records are kept.
	bulkFullRetry = time.Hour
)

// Purposes of the ids of jobs, and of the hash of who began one.
const (
	purposeBatch  = "batch"
	purposeRecord = "record"
	purposeHolder = "holder"
)

// BulkRegister starts a job that registers files of the object store. A retry with
// the same Write gets the first answer.
func (r *JobRequests) BulkRegister(ctx context.Context, b router.BulkRegistration) (id.Batch, error) {
	if !r.bulk {
		return id.Batch{}, router.Errorf(router.InvalidRequest, router.ReasonNoStore, "this service has no object store to register from")
	}
	g, _, err := r.cluster.Of(b.Access)
	if err != nil {
		return id.Batch{}, err
	}
	items, err := r.bulkItems(ctx, g, b.Items)
	if err != nil {
		return id.Batch{}, err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return id.Batch{}, err
	}
	return cluster.WithFreshShards(ctx, r.cluster, g, func(g cluster.Gallery) (id.Batch, error) { return r.beginJob(ctx, g, key, b, items) })
}

// beginJob creates a job, adds its items and opens it for work. It continues a job
// that an earlier try has left unfinished.
func (r *JobRequests) beginJob(ctx context.Context, g cluster.Gallery, key *seal.Key, b router.BulkRegistration, items []job.Item) (id.Batch, error) {
	name, err := r.bulkName(ctx, g, b.Write.Operation)
	if err != nil {
		return id.Batch{}, err
	}
	home := name.Batch.Shard()
	begin := shardfsm.BeginJob{
		Name: name, Application: b.Access.Application, Request: b.Write.Request,
		Total: uint32(len(items)), Time: time.Now().UnixMilli(), Share: admission.JobShare(r.cluster, g.Tenant),
		Epoch: g.Epoch, Holder: beginner(g, b.Access),
	}
	return name.Batch, FillJob(ctx, r.cluster, home, begin, func(index uint32) []byte {
		return job.SealItem(key, job.Name(name), index, items[index])
	})
}

// FillJob creates a job, adds its items, which item seals, and opens it for work.
func FillJob(ctx context.Context, r *cluster.Cluster, home id.Shard, begin shardfsm.BeginJob, item func(index uint32) []byte) error {
	a, err := Ask(ctx, r, JobBegin, home, begin)
	for err == nil && !a.Open && a.Items < begin.Total {
		add := shardfsm.AddJob{Name: begin.Name, First: a.Items, Time: time.Now().UnixMilli()}
		for index, bytes := a.Items, 0; index < begin.Total && bytes < bulkEntryBytes; index++ {
			text := item(index)
			bytes += len(text)
			add.Items = append(add.Items, text)
		}
		a, err = Ask(ctx, r, jobAdd, home, add)
	}
	if err == nil && !a.Open {
		_, err = Ask(ctx, r, jobOpen, home, shardfsm.OpenJob{Name: begin.Name, Time: time.Now().UnixMilli(), Write: begin.Write})
	}
	return err
}

// beginner returns a keyed hash of the role and the holder of an access key.
func beginner(g cluster.Gallery, a router.Access) id.UUID {
	of := sha256.Sum256(append([]byte{byte(a.Role)}, a.Holder...))
	return id.Derive(g.IDKey[:], purposeHolder, id.Operation(of[:16]), 0)
}

// shownTo returns the beginner whose jobs an access shows, or zero for everybody's. Who may only enrol does
// not see jobs of others, which name people.
func shownTo(g cluster.Gallery, a router.Access) id.UUID {
	if a.Role == router.RoleEnrolOnly {
		return beginner(g, a)
	}
	return id.UUID{}
}

// bulkItems checks the items of a job and replaces the names of their tags by
// identities.
func (r *JobRequests) bulkItems(ctx context.Context, g cluster.Gallery, in []router.BulkItem) ([]job.Item, error) {
	if len(in) == 0 || len(in) > router.BulkItemsMax {
		return nil, router.Errorf(router.InvalidRequest, "", "a job has 1 to %d registrations", router.BulkItemsMax)
	}
	var names []string
	known := map[string]int{}
	for _, item := range in {
		if err := checkFilename(item.Filename); err != nil {
			return nil, err
		}
		if _, err := admission.StoredExpiry(r.cluster.Clock, item.Expires); err != nil {
			return nil, err
		}
		for _, tag := range item.Tags {
			if _, ok := known[tag]; !ok {
				known[tag] = len(names)
				names = append(names, tag)
			}
		}
		if len(names) > metafsm.TagsMax {
			return nil, router.Errorf(router.InvalidRequest, router.ReasonUnknownTag, "a gallery has at most %d tags", metafsm.TagsMax)
		}
	}
	tags, err := cluster.TagIdentities(ctx, r.cluster, g, names)
	if err != nil {
		return nil, err
	}
	out := make([]job.Item, len(in))
	for i, item := range in {
		out[i].Filename = item.Filename
		out[i].ExternalID, out[i].UserData = item.Note.ExternalID, item.Note.UserData
		if !item.Expires.IsZero() {
			out[i].Expires = item.Expires.UnixMilli()
		}
		for _, tag := range item.Tags {
			if t := tags[known[tag]]; !slices.Contains(out[i].Tags, t) {
				out[i].Tags = append(out[i].Tags, t)
			}
		}
	}
	return out, nil
}

// checkFilename returns an error for a name that might lead outside the tenant's
// folder in an object store of any kind.
func checkFilename(name string) error {
	bad := func(why string) error {
		return router.Errorf(router.InvalidRequest, "", "the filename %.80q %s", name, why)
	}
	switch {
	case name == "" || len(name) > router.BulkFilenameMax:
		return bad(fmt.Sprintf("must have 1 to %d bytes", router.BulkFilenameMax))
	case !utf8.ValidString(name):
		return bad("must be UTF-8")
	case strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 || c == '\\' }):
		return bad("must have no control characters and no backslash")
	case strings.Contains(name, "://"):
		return bad("must be a name in the object store, not an address")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return bad(`must have no empty part, no "." and no ".."`)
		}
	}
	return nil
}

// bulkName returns the name of the job that an operation creates.
func (r *JobRequests) bulkName(ctx context.Context, g cluster.Gallery, op id.Operation) (shardfsm.JobName, error) {
	at := func(home id.Shard) shardfsm.JobName {
		batch := id.Batch{UUID: id.Derive(g.IDKey[:], purposeBatch, op, home)}
		return shardfsm.JobName{Gallery: g.ID, Generation: g.Generation, Batch: batch}
	}
	home, err := g.Home(op, func(earlier id.Shard) (bool, error) {
		return calls.CallLeader(ctx, r.cluster.Calls, jobKnows, earlier, jobKnowsQuery{at(earlier), g.Epoch})
	})
	return at(home), err
}

// Ask carries out a command on a job. It returns an error when the shard
// refuses it.
func Ask[Q any](ctx context.Context, r *cluster.Cluster, m cluster.Method[Q, shardfsm.JobAnswer], home id.Shard, q Q) (shardfsm.JobAnswer, error) {
	a, err := calls.CallLeader(ctx, r.Calls, m, home, q)
	if err != nil {
		return a, err
	}
	switch a.Status {
	case shardfsm.Done, shardfsm.Replayed:
		return a, nil
	case shardfsm.JobsFull:
		return a, &router.Error{Kind: router.Busy, Message: "too many records of jobs are kept; try again later", RetryAfter: bulkFullRetry}
	case shardfsm.OverJobs:
		return a, admission.OverQuota(metafsm.QuotaJobs, bulkFullRetry)
	case shardfsm.OverJobItems:
		return a, admission.OverQuota(metafsm.QuotaJobItems, bulkFullRetry)
	case shardfsm.UnknownJob, shardfsm.JobItemsMissing:
		return a, &router.Error{Kind: router.Unavailable, Message: "the job was not begun in time; try again", RetryAfter: calls.RetryLater}
	default:
		return a, admission.WriteError(a.Status)
	}
}

// BulkProgress returns a page of a job's records: the first one, or the one that
// pagingID names. The error is NotFound for an unknown job and for another
// gallery's, and to a role that may only enrol also for another holder's.
func (r *JobRequests) BulkProgress(ctx context.Context, access router.Access, batch id.Batch, pagingID string) (router.BulkPage, error) {
	from, ok := readPagingID(batch, pagingID)
	if !ok {
		return router.BulkPage{}, router.Errorf(router.InvalidRequest, "", "this is no paging id of the job")
	}
	g, _, err := r.cluster.At(ctx, access, batch.Shard(), batchNotFound)
	if err != nil {
		return router.BulkPage{}, err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return router.BulkPage{}, err
	}
	name := shardfsm.JobName{Gallery: g.ID, Generation: g.Generation, Batch: batch}
	a, err := cluster.WithFreshShards(ctx, r.cluster, g, func(cluster.Gallery) (jobPageAnswer, error) {
		return calls.CallLeader(ctx, r.cluster.Calls, JobPage, batch.Shard(), JobPageQuery{Name: name, From: from, Length: router.BulkPageMax})
	})
	own := shownTo(g, access)
	switch {
	case err != nil:
		return router.BulkPage{}, err
	case !a.Known || !own.IsZero() && a.Holder != own:
		return router.BulkPage{}, batchNotFound()
	case from >= a.Total:
		return router.BulkPage{}, router.Errorf(router.InvalidRequest, "", "this is no paging id of the job")
	}
	page := router.BulkPage{Records: make([]router.BulkRecord, 0, len(a.Records))}
	for _, rec := range a.Records {
		out, err := bulkRecord(g, key, job.Name(name), rec)
		if err != nil {
			return router.BulkPage{}, err
		}
		page.Records = append(page.Records, out)
	}
	if end := from + uint32(len(a.Records)); end < a.Total {
		page.Next = newPagingID(batch, end)
	}
	return page, nil
}

// Jobs returns the newest JobsMax jobs of a gallery, the one that changed last first; to a role that may only
// enrol those of its holder.
func (r *JobRequests) Jobs(ctx context.Context, access router.Access) ([]router.Job, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil { // the gallery may have grown to more shards
		return nil, err
	}
	g, _, err := r.cluster.Of(access)
	if err != nil {
		return nil, err
	}
	lists, err := calls.Scatter(ctx, r.cluster.Calls, jobList, g.ShardIDs, JobListQuery{Gallery: g.ID, Generation: g.Generation, Holder: shownTo(g, access)})
	if err != nil {
		return nil, err
	}
	all := slices.Concat(lists...)
	slices.SortFunc(all, job.Newest)
	list := make([]router.Job, 0, min(len(all), router.JobsMax))
	for _, s := range all[:cap(list)] {
		list = append(list, router.Job{Batch: s.Batch, Total: int(s.Total), Done: int(s.Done), LastUpdated: time.UnixMilli(s.Touched).UTC()})
	}
	return list, nil
}

func batchNotFound() error { return router.Errorf(router.NotFound, "", "the gallery has no such job") }

// bulkRecord unseals a record.
func bulkRecord(g cluster.Gallery, key *seal.Key, name job.Name, rec job.Record) (router.BulkRecord, error) {
	item, err := job.OpenItem(key, name, rec.Index, rec.Sealed)
	if err != nil {
		return router.BulkRecord{}, err
	}
	out := router.BulkRecord{
		ID:       id.Derive(g.IDKey[:], purposeRecord, itemOperation(name.Batch, rec.Index), name.Batch.Shard()),
		Filename: item.Filename, Note: router.Note{ExternalID: item.ExternalID, UserData: item.UserData},
	}
	if rec.Result == nil {
		return out, nil
	}
	o, err := job.OpenOutcome(key, name, rec.Index, rec.Result.Sealed)
	if err != nil {
		return router.BulkRecord{}, err
	}
	out.Processed, out.Success, out.Attempts = true, rec.Result.Success, int(rec.Result.Attempts)
	out.Subject, out.Event = rec.Result.Subject, rec.Result.Event
	out.Reason, out.Attributes, out.Ignored = o.Reason, o.Attributes, o.Ignored
	return out, nil
}

// itemOperation returns the operation that registers one item of a job.
func itemOperation(batch id.Batch, index uint32) id.Operation {
	h := sha256.New()
	h.Write([]byte("facet job item 1"))
	h.Write(batch.UUID[:])
	h.Write(binary.BigEndian.AppendUint32(nil, index))
	return id.Operation(h.Sum(nil)[:16])
}

// A paging id is an index and 4 bytes of a hash of the index and the batch. The hash
// detects a mistyped id and the id of another job.
const pagingBytes = 8

func newPagingID(batch id.Batch, from uint32) string {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, pagingBytes), from)
	h := sha256.New()
	h.Write([]byte("facet job page 1"))
	h.Write(batch.UUID[:])
	h.Write(b)
	return base64.RawURLEncoding.EncodeToString(append(b, h.Sum(nil)[:pagingBytes-4]...))
}

// readPagingID returns the index in a paging id. The empty text means index 0.
func readPagingID(batch id.Batch, text string) (uint32, bool) {
	if text == "" {
		return 0, true
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != pagingBytes {
		return 0, false
	}
	from := binary.BigEndian.Uint32(b)
	return from, newPagingID(batch, from) == text
}
