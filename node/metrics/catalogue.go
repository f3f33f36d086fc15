package metrics

// Upper bounds of histograms, in seconds. There are few: each is a time series for
// every label value.
var (
	requestBuckets = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 15}
	imageBuckets   = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5}
	searchBuckets  = []float64{.0001, .0005, .0025, .01, .05, .25, 1, 5}
	proposeBuckets = []float64{.002, .005, .01, .025, .1, .5, 2}
)

// The sections of the catalogue, in the order of the documentation. Each metric
// below adds itself to its section, so a section lists its metrics in the order of
// this file.
var (
	requests = &Section{Title: "Requests"}
	engine   = &Section{Title: "Face engine"}
	searches = &Section{Title: "Searches"}
	groups   = &Section{Title: "Raft groups"}
	storage  = &Section{Title: "Storage and memory"}
	cluster  = &Section{Title: "Cluster"}
	bulk     = &Section{Title: "Bulk registration"}
	reviews  = &Section{Title: "Reviews"}

	// Catalogue lists every metric of a node.
	Catalogue = []*Section{requests, engine, searches, groups, storage, cluster, bulk, reviews}
)

// Requests of clients.
var (
	Requests       = requests.counter("facet_requests_total", "Requests answered, by operation (method and path, or none) and status.", "operation", "status")
	RequestSeconds = requests.histogram(requestBuckets, "facet_request_duration_seconds",
		"Time from headers to answer, including reading the body.", "operation")
	RequestsRefused = requests.counter("facet_requests_refused_total",
		"Requests answered with 429 or 5xx, by reason: rate (of a tenant or application), quota (of a tenant), signatures (too many wrong ones), "+
			"bodies (no memory), busy (a full queue or limit), unavailable (no leader), memory (no room for events), timeout, "+
			"fault (of the service).", "reason")
	RequestBytes = requests.counter("facet_request_body_bytes_total", "Request body bytes, as announced or read.")
	AnswerBytes  = requests.counter("facet_answer_body_bytes_total", "Answer body bytes.")
	InFlight     = requests.gauge("facet_requests_in_flight", "Requests being answered.")
	BodyBytes    = requests.gauge("facet_bodies_bytes", "Memory of request bodies.")
	BodyLimit    = requests.gauge("facet_bodies_limit_bytes", "Limit of that memory; beyond it, requests get 429.")
	Connections  = requests.gauge("facet_connections", "Open client connections.")
)

// The face engine.
var (
	Images          = engine.counter("facet_engine_images_total", "Images, by outcome: ok, bad (unreadable), busy (queue full), fault.", "outcome")
	ImageSeconds    = engine.histogram(imageBuckets, "facet_engine_image_duration_seconds", "Time for an accepted image, including its wait for a worker.")
	ImagesWait      = engine.gauge("facet_engine_waiting", "Images waiting for a worker.")
	ImagesWaitLimit = engine.gauge("facet_engine_waiting_limit", "Images that may wait; beyond it, or a tenant's share, requests get 429.")
	ModelRuns       = engine.counter("facet_engine_model_runs_total", "Model runs, by model: detector, landmarks, embedder.", "model")
	EngineInfo      = engine.gauge("facet_engine_info", "1; the label names the JPEG decoder.", "jpeg_decoder")
)

// Searches.
var (
	SearchSeconds = searches.histogram(searchBuckets, "facet_search_duration_seconds",
		"Search time, by stage: extract (image to template), shards (the slowest, with network and proof of leadership), merge.", "stage")
	ShardSearchSeconds = searches.histogram(searchBuckets, "facet_shard_search_duration_seconds",
		"Time of a shard's replica for a search, without network and proof of leadership.")
	SearchRows = searches.counter("facet_search_rows_total", "Active events of searched galleries, including those that a tag excludes.")
	ReadHedges = searches.counter("facet_read_hedges_total", "Slow searches, verifications and lists also sent to a second replica; at most 5 %.")
	HedgesWon  = searches.counter("facet_read_hedges_won_total", "Hedges that the second replica answered first.")
)

// Raft groups.
var (
	GroupLeader      = groups.gauge("facet_group_leader", "1 if this node leads and its disk answers.", "group")
	GroupLeaderKnown = groups.gauge("facet_group_leader_known", "1 if this node knows the leader.", "group")
	GroupVoter       = groups.gauge("facet_group_voter", "1 if this node votes, 0 for a non-voter.", "group")
	GroupTerm        = groups.gauge("facet_group_term", "Raft term.", "group")
	GroupLast        = groups.gauge("facet_group_last_index", "Index of the newest log entry.", "group")
	GroupCommit      = groups.gauge("facet_group_commit_index", "Commit index, as known here.", "group")
	GroupApplied     = groups.gauge("facet_group_applied_index", "Index of the newest applied entry.", "group")
	GroupLag         = groups.gauge("facet_group_lag_entries", "Committed entries, as known here, still to apply.", "group")
	GroupContact     = groups.gauge("facet_group_last_contact_seconds", "Time since the leader was heard; 0 on the leader, -1 if never.", "group")
	GroupStalled     = groups.gauge("facet_group_disk_stalled_seconds", "How long the disk has not answered; 0 if nothing waits.", "group")
	GroupLed         = groups.counter("facet_group_leaderships_total", "Times that this node became leader.", "group")
	GroupProposals   = groups.gauge("facet_group_proposals_in_flight", "Commands waiting to be committed and applied.", "group")
	ProposeSeconds   = groups.histogram(proposeBuckets, "facet_group_proposal_duration_seconds", "Time from proposal to result, on the leader.", "group")
	Comparisons      = groups.counter("facet_group_comparisons_total", "Comparisons of all replicas of a group led here.")
	Diverged         = groups.counter("facet_replicas_diverged_total", "Replicas that differed from the majority in groups led here; each is rebuilt.")
	ProposeFailed    = groups.counter("facet_group_proposals_failed_total", "Commands without a result: leadership lost, too late, or closed.", "group")
)

// Storage.
var (
	GroupEvents     = storage.gauge("facet_group_events", "Active events.", "group")
	GroupDeleted    = storage.gauge("facet_group_events_deleted", "Deleted entries that still take space.", "group")
	GroupTimed      = storage.gauge("facet_group_events_timed", "Active events with their own expiry.", "group")
	GroupTemplates  = storage.gauge("facet_group_template_bytes", "Memory of templates.", "group")
	GroupEntries    = storage.gauge("facet_group_log_entries", "Log entries since the newest snapshot.", "group")
	GroupSnapshot   = storage.gauge("facet_group_snapshot_index", "Log index of the newest snapshot; 0 if none.", "group")
	GroupSnapshotAt = storage.gauge("facet_group_snapshot_age_seconds", "Age of the newest snapshot; absent if none.", "group")
	GroupErased     = storage.gauge("facet_group_last_erasure_timestamp_seconds",
		"Last full erasure of removed data from disk; due every six hours, 0 after a restart.", "group")
	GroupEraseTook   = storage.gauge("facet_group_last_erasure_duration_seconds", "Duration of that erasure; 0 if none.", "group")
	GroupDisk        = storage.gauge("facet_group_disk_bytes", "Size of files, by kind: log, snapshots, segments, codes.", "group", "kind")
	DiskFree         = storage.gauge("facet_disk_free_bytes", "Free bytes for facet on the data directory's file system.")
	DiskSize         = storage.gauge("facet_disk_size_bytes", "Size of that file system.")
	DiskReserve      = storage.gauge("facet_disk_reserve_bytes", "Free bytes below which registrations are refused.")
	ReplicasOut      = storage.gauge("facet_replicas_out_of_service", "Replicas damaged or with a full disk (see facet status).")
	HistoryRewritten = storage.gauge("facet_history_rewritten",
		"Groups whose committed entries other members replaced, until an operator removes the kept folders.")
	StateLost   = storage.gauge("facet_state_lost", "Replicas found with lost state within an hour, plus other nodes stopped for it.")
	MemoryArena = storage.gauge("facet_memory_arena_bytes",
		"Event memory outside the Go heap: planes and codes (for each search), exact (exact templates), records.", "kind")
	MemoryEvents = storage.gauge("facet_memory_events_bytes", "Estimated event memory once all replicas are open.")
	MemoryCold   = storage.gauge("facet_memory_templates_on_disk", "Templates whose exact numbers are only on disk, for lack of memory.")
	MemoryBudget = storage.gauge("facet_memory_budget_bytes", "Limit of event memory; beyond it, registrations are refused.")
)

// The cluster, as this node sees it. Each node counts all nodes, shards and
// replicas, so take the max over nodes and not the sum.
var (
	Ready          = cluster.gauge("facet_ready", "1 while /readyz succeeds.")
	NodesAlive     = cluster.gauge("facet_nodes_alive", "Nodes that gossip believes alive, including this one.")
	NodesMissing   = cluster.gauge("facet_nodes_missing", "Nodes that gossip doesn't believe alive.")
	NodesDraining  = cluster.gauge("facet_nodes_draining", "Nodes ordered to drain.")
	LinkCut        = cluster.gauge("facet_link_cut", "1 if this node reaches the peer only through another node.", "peer")
	NodesDuplicate = cluster.gauge("facet_nodes_duplicate", "Nodes with two processes within five minutes: a data directory was copied.")
	GossipRefused  = cluster.counter("facet_gossip_refused_total", "Gossip messages refused: malformed, or not encrypted with the gossip key.")
	NearQuota      = cluster.gauge("facet_tenants_near_quota",
		"Tenants at 80 % of a quota or more; shard leaders count writes, jobs, jobItems, auditRecords.", "quota")
	ShardsMoving    = cluster.gauge("facet_shards_moving", "Shards being moved.")
	ReplicasMissing = cluster.gauge("facet_replicas_missing", "Shard replicas missing because nodes are missing or too few.")
	ReplicasWanted  = cluster.gauge("facet_replicas_wanted", "Replicas wanted per shard (facet cluster replicas).")
	ShardsUnder     = cluster.gauge("facet_shards_under_replicated", "Shards with fewer live replicas than wanted.")
	ShardsAtRisk    = cluster.gauge("facet_shards_at_risk", "Shards that one more node failure stops.")
	BackupLast      = cluster.gauge("facet_backup_last_timestamp_seconds", "Newest complete scheduled backup. Meta's leader looks every minute, so take max.")
	BackupInterval  = cluster.gauge("facet_backup_interval_seconds", "Time between scheduled backups (backup-every); 0 if none.")
	CertExpiry      = cluster.gauge("facet_certificate_expiry_timestamp_seconds", "When a certificate expires: node, server, authority.", "certificate")
	KeyMade         = cluster.gauge("facet_key_made_timestamp_seconds", "Creation of the newest key, by ring: cluster, gossip.", "ring")
	KeysHeld        = cluster.gauge("facet_keys_held", "Keys that can decrypt; more than one during a rotation.", "ring")
	EventsExpired   = cluster.counter("facet_events_expired_total", "Events that expired on shards led here.")
	ExpiryWaiting   = cluster.gauge("facet_events_expiry_waiting", "Due events on shards led here, waiting for facet_clock_agrees; at most 1,000 per shard.")
	ExpiryNext      = cluster.gauge("facet_expiry_next_timestamp_seconds", "Next expiry on shards led here.")
	ClockAgrees     = cluster.gauge("facet_clock_agrees", "1 if this clock is within 5 seconds of a majority, itself included; else nothing expires here.")
	Clock           = cluster.gauge("facet_clock_seconds", "This clock, in seconds since 1970; compare it with timestamp().")
	BuildInfo       = cluster.gauge("facet_build_info",
		"1; labels show what runs. pack is the start of the pack's identity.", "version", "revision", "goversion", "pack")
)

// Bulk registration.
var (
	JobsQueued = bulk.gauge("facet_job_files_waiting", "Unfinished files of bulk registrations on shards led here.")
	JobsLeased = bulk.gauge("facet_job_files_leased", "Files lent to workers, on shards led here.")
	JobFiles   = bulk.counter("facet_job_files_total", "Files processed, by outcome: registered, refused (see their record).", "outcome")
)

// Reviews of doubtful verifications.
var (
	CasesOpen    = reviews.gauge("facet_review_cases_open", "Open cases of galleries whose home is led here; refreshed every five minutes.")
	CaseOldest   = reviews.gauge("facet_review_oldest_case_timestamp_seconds", "When the oldest of these was opened.")
	CasesClosed  = reviews.counter("facet_review_cases_closed_total", "Cases closed, by state: same, different, disputed, expired, erased.", "state")
	CasesDropped = reviews.counter("facet_review_dropped_total",
		"Doubtful verifications answered without a case: too many open, 60 a minute by the application, quota used up, or no answer from the home.")
)
