// Package admission decides whether a tenant's write has room, and turns the statuses with which
// groups refuse writes into errors for clients.
package admission

import (
	"fmt"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
)

// ExternalTaken returns the error for an external id that another subject has.
func ExternalTaken(subject id.Subject) error {
	return router.Errorf(router.Duplicate, "", "another subject has this externalId: %s", subject)
}

// WriteError returns the error for a status with which a shard refuses a write, and
// nil for success.
func WriteError(s shardfsm.Status) error {
	switch s {
	case shardfsm.Done, shardfsm.Replayed:
		return nil
	case shardfsm.Conflict:
		return keyReused()
	case shardfsm.OpsFull:
		return operationsFull(ForgetRetry)
	case shardfsm.OverWrites:
		return OverQuota(metafsm.QuotaWrites, ForgetRetry)
	case shardfsm.StaleGeneration:
		return router.Errorf(router.Forbidden, "", "Forbidden") // the gallery was deleted
	case shardfsm.Outdated:
		return router.Errorf(calls.Outdated, "", "the gallery lies on more shards by now")
	case shardfsm.Barred:
		return router.Errorf(calls.Outdated, "", "the claim to the external id is out of date")
	case shardfsm.Moved:
		return &router.Error{Kind: router.Busy, Message: "the subject is being updated by others; try again", RetryAfter: calls.RetryLater}
	case shardfsm.UnknownSubject:
		return SubjectNotFound()
	case shardfsm.Merging:
		return router.Errorf(router.InvalidRequest, router.ReasonMerging, "the subject takes part in a merge; try again when that has ended")
	case shardfsm.MergesFull:
		return &router.Error{Kind: router.Busy, Message: "too many subjects are being merged; try again later", RetryAfter: calls.RetryBusy}
	case shardfsm.UnknownEvent:
		return router.Errorf(router.NotFound, "", "the subject has no event with this id")
	case shardfsm.NeedSlots:
		return router.Errorf(router.InvalidRequest, router.ReasonGalleryFull, "the gallery is full")
	default:
		return fmt.Errorf("the shard answered: %v", s)
	}
}

// SubjectNotFound returns the error for an unknown subject.
func SubjectNotFound() error {
	return router.Errorf(router.NotFound, router.ReasonSubjectNotFound, "there is no subject with this id")
}

// DeletedSince returns the answer to the retry of a creation whose outcome was
// deleted meanwhile. The retry creates nothing.
func DeletedSince(reason, what string) error {
	return router.Errorf(router.InvalidRequest, reason, "this request was carried out before, and the %s that it made was deleted since; send it with a new Idempotency-Key to carry it out again", what)
}

// ForgetRetry is how long the files of a gallery rest whose tenant has too many remembered
// writes. It is also the Retry-After of a write that is refused for that when its group does
// not say from when on it has room.
const ForgetRetry = time.Minute

// OverQuota returns the error for what would exceed a quota of the tenant. After that time
// there may be room; 0 stands for quotas with which time alone makes none.
func OverQuota(q metafsm.Quota, after time.Duration) error {
	e := router.Errorf(router.OverQuota, q.String(), "the tenant's quota %q is used up", q)
	e.RetryAfter = after
	switch q {
	case metafsm.QuotaChanges, metafsm.QuotaWrites:
		e.Message += ": too many of its recent writes are remembered; try again later, or ask an operator for more"
	case metafsm.QuotaJobs, metafsm.QuotaJobItems: // a tenant can delete jobs only with their gallery
		e.Message += ": its jobs are kept for 30 days; try again later, or ask an operator for more"
	default:
		e.Message += "; delete something, or ask an operator for more"
	}
	return e
}

// operationsFull returns the error for a write that a group has no room to remember. After
// that time there may be room.
func operationsFull(after time.Duration) error {
	return &router.Error{Kind: router.Busy, Message: "too many recent writes are remembered; try again later", RetryAfter: after}
}

func keyReused() error {
	return router.Errorf(router.InvalidRequest, router.ReasonKeyReused, "this Idempotency-Key was used with another body; send a new one")
}
