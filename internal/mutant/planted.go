//go:build mutant

package mutant

import "os"

// planted is the name of the planted bug.
var planted = os.Getenv(Variable)

// The bugs. At most one is planted.
var (
	// AckBeforeCommit answers an unregistration before it is committed.
	AckBeforeCommit = planted == "ack_before_commit"
	// StaleRead returns read indexes without asking a quorum who leads.
	StaleRead = planted == "stale_read"
	// FollowerRead reads from a replica as it is.
	FollowerRead = planted == "follower_read"
	// NoTermEntry returns read indexes before an entry of the leader's own term is applied.
	NoTermEntry = planted == "no_term_entry"
	// OpsForgotten does not recognise an operation that was done before.
	OpsForgotten = planted == "ops_forgotten"
	// OpsNotInSnapshot leaves the operations that were done out of snapshots.
	OpsNotInSnapshot = planted == "ops_not_in_snapshot"
	// GrantAdds adds a repeated grant to the slots of a shard again.
	GrantAdds = planted == "grant_adds"
	// ReclaimEarly reclaims one slot more than a shard has returned.
	ReclaimEarly = planted == "reclaim_early"
	// SkipDeadShard answers without the shards that do not answer.
	SkipDeadShard = planted == "skip_dead_shard"
	// TagsIgnored searches without the filter by tags.
	TagsIgnored = planted == "tags_ignored"
	// EpochIgnored searches by an old list of a gallery's shards.
	EpochIgnored = planted == "epoch_ignored"
	// FenceOpen lets the writes of a deleted gallery in.
	FenceOpen = planted == "fence_open"
	// ClockBack takes times that go back.
	ClockBack = planted == "clock_back"
	// TornVote writes the term and the candidate of a vote separately.
	TornVote = planted == "torn_vote"
	// StaleLog leaves the log as it is when a snapshot is installed.
	StaleLog = planted == "stale_log"
	// SealIgnored reads log entries whose checksum is wrong.
	SealIgnored = planted == "seal_ignored"
	// StallIgnored keeps leading while the disk hangs.
	StallIgnored = planted == "stall_ignored"
	// SyncFailureIgnored continues after a write has failed.
	SyncFailureIgnored = planted == "sync_failure_ignored"
	// NoSync does not wait for the sync of the log.
	NoSync = planted == "no_sync"
	// RemovedStays lets a removed node continue.
	RemovedStays = planted == "removed_stays"
	// AnyTenant accepts the API keys of other tenants.
	AnyTenant = planted == "any_tenant"
	// ClockInFSM reads the clock in a state machine.
	ClockInFSM = planted == "clock_in_fsm"
	// MapOrder keeps tags in the order of a map.
	MapOrder = planted == "map_order"
	// RestoreMerges keeps the operations from before a restore.
	RestoreMerges = planted == "restore_merges"
	// FencesLost leaves out of snapshots which galleries were deleted.
	FencesLost = planted == "fences_lost"
	// UpdateLosesOld leaves no deleted entry of an updated event.
	UpdateLosesOld = planted == "update_loses_old"
	// RequestIgnored takes a different request with the same key for a retry.
	RequestIgnored = planted == "request_ignored"
	// RetryNewShard repeats a retried write on its new shard after the gallery grew.
	RetryNewShard = planted == "retry_new_shard"
	// OldEpochEnrols accepts an enrolment that chose its shard before the gallery grew.
	OldEpochEnrols = planted == "old_epoch_enrols"
	// RevokedStays accepts keys even when this node has not heard from meta for long.
	RevokedStays = planted == "revoked_stays"
	// ForeignGallery returns galleries of other tenants.
	ForeignGallery = planted == "foreign_gallery"
	// WideWindow accepts signatures for ten minutes.
	WideWindow = planted == "wide_window"
	// UnsignedHeader accepts an API key that is not signed.
	UnsignedHeader = planted == "unsigned_header"
	// BodyIgnored believes the hash of the body that the request states.
	BodyIgnored = planted == "body_ignored"
)
