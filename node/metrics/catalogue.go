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
	Requests = requests.counter("facet_requests_total",
		"Requests answered, by operation (method and path of the interface; \"none\" where there is no such operation) and status.", "operation", "status")
	RequestSeconds = requests.histogram(requestBuckets, "facet_request_duration_seconds",
		"Time from a request's headers to its answer, reading of the body included.", "operation")
	RequestsRefused = requests.counter("facet_requests_refused_total",
		"Requests answered with 429 or 5xx, by reason: rate (of a tenant or application), quota (of a tenant, used up), signatures (too many wrong ones of an access key from an address), bodies (too many bytes of bodies at once), busy (engine or "+
			"search queue full), unavailable (a group without a leader), memory (no room for more events), timeout, fault (a fault of the service).", "reason")
	RequestBytes = requests.counter("facet_request_body_bytes_total", "Bytes of bodies that requests announced.")
	AnswerBytes  = requests.counter("facet_answer_body_bytes_total", "Bytes of bodies of answers.")
	InFlight     = requests.gauge("facet_requests_in_flight", "Requests that are being answered now.")
	BodyBytes    = requests.gauge("facet_bodies_bytes", "Memory that bodies of requests take now.")
	BodyLimit    = requests.gauge("facet_bodies_limit_bytes", "Memory that bodies of requests may take; beyond it requests get 429.")
	Connections  = requests.gauge("facet_connections", "Open connections of clients.")
)

// The face engine.
var (
	Images = engine.counter("facet_engine_images_total",
		"Images processed, by outcome: ok, bad (no image that can be read), busy (refused, too many wait), fault.", "outcome")
	ImageSeconds    = engine.histogram(imageBuckets, "facet_engine_image_duration_seconds", "Time for an image, waiting for a worker included; without refused ones.")
	ImagesWait      = engine.gauge("facet_engine_waiting", "Images that wait for a worker now.")
	ImagesWaitLimit = engine.gauge("facet_engine_waiting_limit", "Images that may wait for a worker; a further image, or one of a tenant that has its share of the places, gets 429 before its body is read.")
	ModelRuns       = engine.counter("facet_engine_model_runs_total", "Runs of the models, by model: detector, landmarks, embedder.", "model")
	EngineInfo      = engine.gauge("facet_engine_info", "1; the label says how JPEG files are decoded.", "jpeg_decoder")
)

// Searches.
var (
	SearchSeconds = searches.histogram(searchBuckets, "facet_search_duration_seconds",
		"Time of the parts of searches that this node was asked for, by stage: extract (image to template), shards (the slowest shard, network "+
			"and its proof of leadership included), merge.", "stage")
	ShardSearchSeconds = searches.histogram(searchBuckets, "facet_shard_search_duration_seconds",
		"Time that a shard's replica here took for its part of a search, without network and without its proof that it knows every write.")
	SearchRows = searches.counter("facet_search_rows_total", "Active events of the slices that were searched here: each is compared with the probe, unless a tag excludes it.")
	ReadHedges = searches.counter("facet_read_hedges_total", "Reads of this node (searches, verifications, lists) that took longer than usual at one replica of a shard and were asked at another one, at most a twentieth of all.")
	HedgesWon  = searches.counter("facet_read_hedges_won_total", "Hedged reads that the second replica answered first.")
)

// Raft groups.
var (
	GroupLeader      = groups.gauge("facet_group_leader", "1 where this node leads the group and its disk answers.", "group")
	GroupLeaderKnown = groups.gauge("facet_group_leader_known", "1 where this node knows a leader of the group.", "group")
	GroupVoter       = groups.gauge("facet_group_voter", "1 where this node votes in the group, 0 where it only receives the log.", "group")
	GroupTerm        = groups.gauge("facet_group_term", "Raft term of the group.", "group")
	GroupLast        = groups.gauge("facet_group_last_index", "Index of the newest entry of the log here.", "group")
	GroupCommit      = groups.gauge("facet_group_commit_index", "Log index up to which a quorum has the group's log, as known here.", "group")
	GroupApplied     = groups.gauge("facet_group_applied_index", "Log index that the group's state here has applied.", "group")
	GroupLag         = groups.gauge("facet_group_lag_entries", "Committed entries, as known here, that the state here has still to apply.", "group")
	GroupContact     = groups.gauge("facet_group_last_contact_seconds", "Time since this node last heard the leader; 0 on the leader, -1 when never.", "group")
	GroupStalled     = groups.gauge("facet_group_disk_stalled_seconds", "How long the group has waited for an answer of the disk; 0 when it waits for none.", "group")
	GroupLed         = groups.counter("facet_group_leaderships_total", "How often this node became the group's leader since its start.", "group")
	GroupProposals   = groups.gauge("facet_group_proposals_in_flight", "Commands that wait to be committed and applied here.", "group")
	ProposeSeconds   = groups.histogram(proposeBuckets, "facet_group_proposal_duration_seconds", "Time from a command's proposal to the machine's answer, on the leader.", "group")
	Comparisons      = groups.counter("facet_group_comparisons_total", "Times that this node, as a leader, compared the state of all of a group's replicas.")
	Diverged         = groups.counter("facet_replicas_diverged_total", "Replicas of groups led here whose state was not the majority's. Each is rebuilt from its peers.")
	ProposeFailed    = groups.counter("facet_group_proposals_failed_total", "Commands that were proposed here and got no answer: no leader any more, too late, or closed.", "group")
)

// Storage.
var (
	GroupEvents     = storage.gauge("facet_group_events", "Active events of the shard's replica here.", "group")
	GroupDeleted    = storage.gauge("facet_group_events_deleted", "Deleted entries that still hold a slot in the shard's replica here.", "group")
	GroupTimed      = storage.gauge("facet_group_events_timed", "Active events of the shard's replica here that have an expires of their own.", "group")
	GroupTemplates  = storage.gauge("facet_group_template_bytes", "Memory of the shard's templates here.", "group")
	GroupEntries    = storage.gauge("facet_group_log_entries", "Entries in the group's log since the newest snapshot here.", "group")
	GroupSnapshot   = storage.gauge("facet_group_snapshot_index", "Log index of the group's newest snapshot here; 0 is none.", "group")
	GroupSnapshotAt = storage.gauge("facet_group_snapshot_age_seconds", "Age of the group's newest snapshot here; absent without one.", "group")
	GroupErased     = storage.gauge("facet_group_last_erasure_timestamp_seconds",
		"When the last whole round of erasing the group's removed data from the disk here ended, in seconds since 1970; 0 is none since the group was opened. One is due every six hours.", "group")
	GroupEraseTook   = storage.gauge("facet_group_last_erasure_duration_seconds", "How long that round took; 0 without one.", "group")
	GroupDisk        = storage.gauge("facet_group_disk_bytes", "Size of the group's files here, by kind: log, snapshots, segments, codes.", "group", "kind")
	DiskFree         = storage.gauge("facet_disk_free_bytes", "Free bytes of the file system with the data directory, as far as this process may take them.")
	DiskSize         = storage.gauge("facet_disk_size_bytes", "Size of the file system with the data directory.")
	DiskReserve      = storage.gauge("facet_disk_reserve_bytes", "Bytes of that file system that stay free: below it the node refuses registrations.")
	ReplicasOut      = storage.gauge("facet_replicas_out_of_service", "Replicas here that are damaged, or whose disk is full: the status says why.")
	HistoryRewritten = storage.gauge("facet_history_rewritten", "Groups here whose committed entries other members have replaced, until an operator has removed the kept folders.")
	StateLost        = storage.gauge("facet_state_lost", "Replicas here that had lost state in the last hour, plus other nodes that stopped because of lost state: the status names them.")
	MemoryArena      = storage.gauge("facet_memory_arena_bytes", "Memory that events take outside of the Go heap, by kind: planes and codes, which each search reads; exact, the exact numbers of templates; records.", "kind")
	MemoryEvents     = storage.gauge("facet_memory_events_bytes", "Estimate of the memory that the events of all replicas here take, or will once all are open.")
	MemoryCold       = storage.gauge("facet_memory_templates_on_disk", "Templates whose exact numbers are on disk only, because the memory was short: searches read the few that they need.")
	MemoryBudget     = storage.gauge("facet_memory_budget_bytes", "Memory that events may take on this node; beyond it the node refuses registrations.")
)

// The cluster, as this node sees it. Each node counts all nodes, shards and
// replicas, so take the max over nodes and not the sum.
var (
	Ready           = cluster.gauge("facet_ready", "1 while /readyz says yes.")
	NodesAlive      = cluster.gauge("facet_nodes_alive", "Nodes that gossip believes alive, this one included.")
	NodesMissing    = cluster.gauge("facet_nodes_missing", "Nodes of the cluster's records that gossip does not believe alive.")
	NodesDraining   = cluster.gauge("facet_nodes_draining", "Nodes that operators have ordered to drain.")
	LinkCut         = cluster.gauge("facet_link_cut", "1 for each node that this node reaches only through another one, 0 for the others.", "peer")
	NodesDuplicate  = cluster.gauge("facet_nodes_duplicate", "Nodes of which this one has heard two processes in the last five minutes: a data directory was copied.")
	GossipRefused   = cluster.counter("facet_gossip_refused_total", "Packets and streams of gossip that were refused: malformed, or not encrypted with the cluster's gossip key.")
	NearQuota       = cluster.gauge("facet_tenants_near_quota", "Tenants that have used 80 % of a quota or more, by quota. Those of writes, jobs, jobItems and auditRecords are counted on the leaders of shards. facet tenant show names the tenants.", "quota")
	ShardsMoving    = cluster.gauge("facet_shards_moving", "Shards on the move to other nodes.")
	ReplicasMissing = cluster.gauge("facet_replicas_missing", "Replicas of shards, on whichever node of the cluster, whose node is missing, or for which there are too few nodes.")
	ReplicasWanted  = cluster.gauge("facet_replicas_wanted", "Replicas that each shard should have (facet cluster replicas).")
	ShardsUnder     = cluster.gauge("facet_shards_under_replicated", "Shards that have fewer replicas on nodes that are alive than wanted.")
	ShardsAtRisk    = cluster.gauge("facet_shards_at_risk", "Shards that the death of one more node would stop: no more than a quorum of their voters is alive.")
	BackupLast      = cluster.gauge("facet_backup_last_timestamp_seconds",
		"When the newest whole backup by the clock was made, in seconds since 1970, as this node has seen it; 0 is none. Meta's leader looks every minute, so take the max over nodes.")
	BackupInterval = cluster.gauge("facet_backup_interval_seconds", "Time between backups by the clock (backup-every); 0 without a schedule.")
	CertExpiry     = cluster.gauge("facet_certificate_expiry_timestamp_seconds", "When a certificate ends, in seconds since 1970, by certificate: node, server, authority.", "certificate")
	KeyMade        = cluster.gauge("facet_key_made_timestamp_seconds", "When the newest of the keys that all nodes share was made, in seconds since 1970, by ring: cluster, gossip.", "ring")
	KeysHeld       = cluster.gauge("facet_keys_held", "Keys of a ring that this node can open with; more than one until a rotation is over.", "ring")
	EventsExpired  = cluster.counter("facet_events_expired_total", "Events that expired on the shards that this node led.")
	ExpiryWaiting  = cluster.gauge("facet_events_expiry_waiting", "Events on the shards that this node leads that are due, as far as it looked, and wait because its clock agrees with no majority.")
	ExpiryNext     = cluster.gauge("facet_expiry_next_timestamp_seconds", "When the next event of the shards that this node leads is due, in seconds since 1970; 0 is none.")
	ClockAgrees    = cluster.gauge("facet_clock_agrees", "1 while this node's clock is within 5 seconds of a majority of the nodes' clocks, itself counted. Else no event expires on the shards that it leads.")
	Clock          = cluster.gauge("facet_clock_seconds", "This node's clock, in seconds since 1970: compare it with its own timestamp().")
	BuildInfo      = cluster.gauge("facet_build_info", "1; the labels say what runs here. pack begins with the model pack's identity.", "version", "revision", "goversion", "pack")
)

// Bulk registration.
var (
	JobsQueued = bulk.gauge("facet_job_files_waiting", "Files of open bulk registrations that are not done, on the shards that this node leads.")
	JobsLeased = bulk.gauge("facet_job_files_leased", "Files of bulk registrations that this node has lent to workers, as leader of their shard.")
	JobFiles   = bulk.counter("facet_job_files_total", "Files of bulk registrations that this node worked on, by outcome: registered, refused (its record says why).", "outcome")
)

// Reviews of doubtful verifications.
var (
	CasesOpen    = reviews.gauge("facet_review_cases_open", "Open cases of the galleries whose home this node leads, as of the last change, or look within five minutes.")
	CaseOldest   = reviews.gauge("facet_review_oldest_case_timestamp_seconds", "When the oldest of these cases was opened, in seconds since 1970; 0 is none.")
	CasesClosed  = reviews.counter("facet_review_cases_closed_total", "Cases that this node closed, as leader of their gallery's home, by state: same, different, disputed, expired, erased.", "state")
	CasesDropped = reviews.counter("facet_review_dropped_total", "Doubtful verifications of this node that opened no case: too many were open, the application had opened 60 within a minute, a quota was used up, or the gallery's home did not answer. Their answers were given.")
)
