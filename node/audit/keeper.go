package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/audit/entry"
	"facet/node/loop"
	"facet/shard/auditlog"
	"facet/shard/seal"
)

const (
	// settleInterval is how often the bytes of records in memory are compared with tailBytesMax.
	settleInterval = 5 * time.Second
	tailBytesMax   = 16 << 20
	// expireInterval is how often records are looked for whose retention has passed.
	expireInterval = time.Hour
	expireTimeout  = time.Minute
	// intentAge is how old an open intent must be: every request has ended by then. intentsMost is the most
	// that are completed at once. remembered is how long every shard remembers an operation.
	intentAge   = time.Minute
	intentsMost = 256
	remembered  = 9 * time.Minute
	// slack is how much longer than its days a record may stay. Records of several nodes are not quite in
	// the order of their times.
	slack = time.Hour
	// scanTime is about how long the records of one log are read that may have expired.
	scanTime = 5 * time.Second
	// entriesAtOnce is how many records are asked for at once, at most.
	entriesAtOnce = 256
)

// errExpired is returned for a record without contents.
var errExpired = errors.New("audit: the contents of the record are gone")

// Logs are the audit logs of a cluster. *routing.Router is one.
type Logs interface {
	EnsureClusterLog(ctx context.Context) error
	AuditLogs() []id.Tenant
	AuditDays(tenant id.Tenant) (days uint32, ok bool)
	AuditKey(tenant id.Tenant) (*seal.Key, error)
	AuditHead(ctx context.Context, tenant id.Tenant) (auditlog.Head, error)
	AuditEntries(ctx context.Context, tenant id.Tenant, first uint64, most int) ([]auditlog.Entry, error)
	ExpireAudit(ctx context.Context, tenant id.Tenant, before uint64) error
	SettleAudit(most int64) error
	OpenIntents(tenant id.Tenant, most int) []auditlog.Intent
	Remembers(ctx context.Context, op id.Operation) (bool, error)
}

// Keeper keeps the records on this node's shards out of memory. In the logs that this node leads it lets
// contents expire and completes the intents whose nodes gave no outcome.
type Keeper struct {
	*loop.Loop
	logs Logs
	now  func() (now time.Time, agrees bool)
	// add adds a record without waiting for it.
	add func(tenant id.Tenant, e Event)
	// expired is when contents were last looked for.
	expired time.Time
}

// NewKeeper returns a Keeper; Run does its work. now returns the time, and whether a majority of nodes has
// about the same. add is Correct of the node's Recorder.
func NewKeeper(logs Logs, now func() (time.Time, bool), add func(id.Tenant, Event)) *Keeper {
	return &Keeper{Loop: loop.New("audit logs"), logs: logs, now: now, add: add}
}

// Run works until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	k.Every(ctx, settleInterval, func(ctx context.Context) error {
		err := errors.Join(k.logs.SettleAudit(tailBytesMax), k.logs.EnsureClusterLog(ctx))
		now, agrees := k.now()
		if !agrees {
			return err
		}
		err = errors.Join(err, k.Complete(ctx, now))
		if time.Since(k.expired) >= expireInterval {
			k.expired = time.Now()
			more, failed := k.Expire(ctx, now)
			if err = errors.Join(err, failed); more {
				k.expired = time.Time{}
			}
		}
		return err
	})
}

// Complete adds an outcome to each intent that is open and older than intentAge at a time.
func (k *Keeper) Complete(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, expireTimeout)
	defer cancel()
	var failed []error
	for _, tenant := range k.logs.AuditLogs() {
		for _, open := range k.logs.OpenIntents(tenant, intentsMost) {
			r, err := k.record(ctx, tenant, open.Index)
			if errors.Is(err, errExpired) {
				r, err = &entry.Record{ID: open.Request}, nil
			}
			if err == nil && now.Sub(time.UnixMilli(r.Time)) < intentAge {
				break // and so are those after it
			}
			if err == nil {
				err = k.complete(ctx, tenant, r, now)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("complete an intent of tenant %s: %w", tenant, err))
				break
			}
		}
	}
	return errors.Join(failed...)
}

// complete adds an outcome to an intent. It says all that the intent says, but for the operation.
func (k *Keeper) complete(ctx context.Context, tenant id.Tenant, intent *entry.Record, now time.Time) error {
	out := entry.New(entry.Completed, now)
	random, at := out.Random, out.Time
	*out = *intent
	out.Random, out.Time, out.Kind, out.Doing = random, at, entry.Completed, id.Operation{}
	out.Reason = entry.ReasonUnknown
	if intent.Doing != (id.Operation{}) {
		done, err := k.logs.Remembers(ctx, intent.Doing)
		switch {
		case err != nil:
			return err
		case done:
			out.Reason = entry.ReasonCarriedOut
		case now.Sub(time.UnixMilli(intent.Time)) < remembered:
			out.Reason = entry.ReasonNotCarriedOut
		}
	}
	k.add(tenant, Event{Record: out})
	return nil
}

// Expire removes the contents whose retention has passed at a time. It reports whether there may be more.
func (k *Keeper) Expire(ctx context.Context, now time.Time) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, expireTimeout)
	defer cancel()
	var failed []error
	for _, tenant := range k.logs.AuditLogs() {
		days, ok := k.logs.AuditDays(tenant)
		if !ok {
			continue
		}
		unread, err := k.expire(ctx, tenant, now, now.Add(-time.Duration(days)*24*time.Hour-slack))
		if more = more || unread; err != nil {
			failed = append(failed, fmt.Errorf("expire records of tenant %s: %w", tenant, err))
		}
	}
	return more, errors.Join(failed...)
}

// expire removes the contents of a tenant's first records, all of which are older than a time. The log says so
// before. It reports whether there may be more.
func (k *Keeper) expire(ctx context.Context, tenant id.Tenant, now, before time.Time) (more bool, err error) {
	head, err := k.logs.AuditHead(ctx, tenant)
	if err != nil {
		return false, err
	}
	end, begun := head.Bare, time.Now()
	for end < head.Size && !more {
		list, err := k.records(ctx, tenant, end, head.Size-end)
		if err != nil {
			return false, err
		}
		younger := slices.IndexFunc(list, func(r *entry.Record) bool { return !time.UnixMilli(r.Time).Before(before) })
		if younger >= 0 {
			end += uint64(younger)
			break
		}
		end, more = end+uint64(len(list)), time.Since(begun) > scanTime
	}
	if end == head.Bare {
		return false, nil
	}
	act := entry.New(entry.Act, now)
	act.Operation, act.Count = entry.OperationExpire, end
	k.add(tenant, Event{Record: act})
	return more, k.logs.ExpireAudit(ctx, tenant, end)
}

// record returns a record of a log.
func (k *Keeper) record(ctx context.Context, tenant id.Tenant, number uint64) (*entry.Record, error) {
	list, err := k.records(ctx, tenant, number, 1)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// records returns records of a log from number first on, at least one. The error is errExpired if one has no
// contents.
func (k *Keeper) records(ctx context.Context, tenant id.Tenant, first, most uint64) (list []*entry.Record, err error) {
	key, err := k.logs.AuditKey(tenant)
	if err != nil {
		return nil, err
	}
	entries, err := k.logs.AuditEntries(ctx, tenant, first, int(min(most, entriesAtOnce)))
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("the log has no record %d", first)
	}
	for i, e := range entries {
		if len(e.Sealed) == 0 {
			return nil, fmt.Errorf("%w: record %d", errExpired, first+uint64(i))
		}
		content, err := key.Open(e.Sealed, tenant.UUID[:])
		if err != nil {
			return nil, err
		}
		r, err := entry.Decode(content)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}
