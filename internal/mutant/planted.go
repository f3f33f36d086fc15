//go:build mutant

package mutant

import "os"

// planted is the name of the planted bug.
var planted = os.Getenv(Variable)

// The bugs; see mutant.go.
var (
	AckBeforeCommit    = planted == "ack_before_commit"
	StaleRead          = planted == "stale_read"
	FollowerRead       = planted == "follower_read"
	NoTermEntry        = planted == "no_term_entry"
	OpsForgotten       = planted == "ops_forgotten"
	OpsNotInSnapshot   = planted == "ops_not_in_snapshot"
	GrantAdds          = planted == "grant_adds"
	ReclaimEarly       = planted == "reclaim_early"
	SkipDeadShard      = planted == "skip_dead_shard"
	TagsIgnored        = planted == "tags_ignored"
	EpochIgnored       = planted == "epoch_ignored"
	FenceOpen          = planted == "fence_open"
	ClockBack          = planted == "clock_back"
	TornVote           = planted == "torn_vote"
	StaleLog           = planted == "stale_log"
	SealIgnored        = planted == "seal_ignored"
	StallIgnored       = planted == "stall_ignored"
	SyncFailureIgnored = planted == "sync_failure_ignored"
	NoSync             = planted == "no_sync"
	RemovedStays       = planted == "removed_stays"
	AnyTenant          = planted == "any_tenant"
	ClockInFSM         = planted == "clock_in_fsm"
	MapOrder           = planted == "map_order"
	RestoreMerges      = planted == "restore_merges"
	FencesLost         = planted == "fences_lost"
	UpdateLosesOld     = planted == "update_loses_old"
	RequestIgnored     = planted == "request_ignored"
	RetryNewShard      = planted == "retry_new_shard"
	OldEpochEnrols     = planted == "old_epoch_enrols"
	RevokedStays       = planted == "revoked_stays"
	ForeignGallery     = planted == "foreign_gallery"
	WideWindow         = planted == "wide_window"
	UnsignedHeader     = planted == "unsigned_header"
	BodyIgnored        = planted == "body_ignored"
)
