package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

var operatorsGroups = row{"Raft groups", []panel{
	{
		title: "Commands committed", is: "By group; 0 is meta.", unit: units.OpsPerSecond,
		queries: []query{{
			`sum by (group) (rate(facet_group_proposal_duration_seconds_count[$__rate_interval]))`, "{{group}}",
			`facet_group_proposal_duration_seconds_count{group="1", instance="a"} 0+60x20; facet_group_proposal_duration_seconds_count{group="1", instance="b"} 0+60x20`, `{group="1"} 2`,
		}},
	},
	{
		title: "99 of 100 commands are committed within", is: "From the proposal to the state machine's answer, on the leader. It is mostly the disk.", unit: units.Seconds, limits: above(.1, .5),
		queries: []query{{
			`histogram_quantile(0.99, sum by (group, le) (rate(facet_group_proposal_duration_seconds_bucket[$__rate_interval])))`, "{{group}}",
			`facet_group_proposal_duration_seconds_bucket{group="1", le="0.01"} 0+98x20; facet_group_proposal_duration_seconds_bucket{group="1", le="0.025"} 0+100x20; facet_group_proposal_duration_seconds_bucket{group="1", le="+Inf"} 0+100x20`,
			`{group="1"} 0.0175`,
		}},
	},
	{
		title: "Commands without an answer", is: "The node led no more, was too late, or closed. Routers try again.", unit: units.OpsPerSecond, limits: above(.1, 1),
		queries: []query{{`sum by (group) (rate(facet_group_proposals_failed_total[$__rate_interval]))`, "{{group}}", `facet_group_proposals_failed_total{group="1", instance="a"} 0+6x20`, `{group="1"} 0.1`}},
	},
	{
		title: "Commands that wait", is: "Commands that wait to be committed and applied, by node.", unit: units.Short,
		queries: []query{{
			`sum by (instance) (facet_group_proposals_in_flight{instance=~"$node"})`, "{{instance}}", `facet_group_proposals_in_flight{group="1", instance="a"} 3x20; facet_group_proposals_in_flight{group="2", instance="a"} 1x20`, `{instance="a"} 4`,
		}},
	},
	{
		title: "Changes of leaders in 15 minutes", is: "More than five fire FacetLeaderFlapping.", unit: units.Short, limits: above(3, 5),
		queries: []query{{
			`sum by (group) (increase(facet_group_leaderships_total[15m]))`, "{{group}}", `facet_group_leaderships_total{group="1", instance="a"} 0+1x20; facet_group_leaderships_total{group="1", instance="b"} 1x20`, `{group="1"} 15`,
		}},
	},
	{
		title: "Entries behind the leader", is: "Committed entries that a replica has still to apply, most of any group.", unit: units.Short, limits: above(1000, 10_000),
		queries: []query{{
			`max by (instance) (max by (group) (facet_group_commit_index) - on (group) group_right () facet_group_applied_index{instance=~"$node"})`, "{{instance}}",
			`facet_group_commit_index{group="1", instance="a"} 100x20; facet_group_commit_index{group="1", instance="b"} 90x20; facet_group_applied_index{group="1", instance="a"} 100x20; facet_group_applied_index{group="1", instance="b"} 60x20`,
			`{instance="a"} 0; {instance="b"} 40`,
		}},
	},
	{
		title: "Leader last heard", is: "Longest time since a follower heard a group's leader. After 1.5 s it calls an election.", unit: units.Seconds, limits: above(1, 1.5),
		queries: []query{{
			`max by (instance) (facet_group_last_contact_seconds{instance=~"$node"})`, "{{instance}}", `facet_group_last_contact_seconds{group="1", instance="a"} 0.5x20; facet_group_last_contact_seconds{group="2", instance="a"} 0x20`, `{instance="a"} 0.5`,
		}},
	},
	{
		title: "Disk owes an answer for", is: "After 1.5 s leaderships pass on, after 30 s the group stops.", unit: units.Seconds, limits: above(1, 2),
		queries: []query{{
			`max by (instance) (facet_group_disk_stalled_seconds{instance=~"$node"})`, "{{instance}}", `facet_group_disk_stalled_seconds{group="1", instance="a"} 4x20; facet_group_disk_stalled_seconds{group="2", instance="a"} 0x20`, `{instance="a"} 4`,
		}},
	},
	{
		title: "Terms", is: "Raft term of each group. It grows with each election.", unit: units.Short,
		queries: []query{{`max by (group) (facet_group_term)`, "{{group}}", `facet_group_term{group="1", instance="a"} 7x20; facet_group_term{group="1", instance="b"} 8x20`, `{group="1"} 8`}},
	},
}}

var operatorsRepair = row{"Moves, repair and lost state", []panel{
	{
		title: "Replicas to rebuild", is: "Replicas whose node is missing, or for which there are too few nodes, and replicas that are out of service.", unit: units.Short, limits: above(1, 3),
		queries: []query{
			{`max(facet_replicas_missing)`, "missing", `facet_replicas_missing{instance="a"} 4x20; facet_replicas_missing{instance="b"} 3x20`, `{} 4`},
			{`sum(facet_replicas_out_of_service{instance=~"$node"})`, "out of service", `facet_replicas_out_of_service{instance="a"} 1x20; facet_replicas_out_of_service{instance="b"} 1x20`, `{} 2`},
		},
	},
	{
		title: "Lost state", is: "Replicas and nodes that went back to an older state, and groups of which only one node has acknowledged writes.", unit: units.Short, limits: above(1, 1),
		queries: []query{
			{`facet_state_lost{instance=~"$node"}`, "{{instance}} lost state", `facet_state_lost{instance="a"} 1x20`, `{instance="a"} 1`},
			{`facet_history_rewritten{instance=~"$node"}`, "{{instance}} rewritten history", `facet_history_rewritten{instance="a"} 0x20`, `{instance="a"} 0`},
		},
	},
	{
		title: "Shards on the move", is: "A move takes minutes. FacetMoveStuck fires after two hours.", unit: units.Short,
		queries: []query{{`max(facet_shards_moving)`, "shards", `facet_shards_moving{instance="a"} 2x20; facet_shards_moving{instance="b"} 1x20`, `{} 2`}},
	},
	{
		title: "Replicas compared and diverged", is: "Comparisons of all of a group's replicas, and replicas that differed. The second is 0 unless there is a defect.", unit: units.OpsPerSecond,
		queries: []query{
			{`sum(rate(facet_group_comparisons_total{instance=~"$node"}[$__rate_interval]))`, "compared", `facet_group_comparisons_total{instance="a"} 0+6x20; facet_group_comparisons_total{instance="b"} 0+6x20`, `{} 0.2`},
			{`sum(rate(facet_replicas_diverged_total{instance=~"$node"}[$__rate_interval]))`, "diverged", `facet_replicas_diverged_total{instance="a"} 0x20; facet_replicas_diverged_total{instance="b"} 0+6x20`, `{} 0.1`},
		},
	},
}}

var operatorsStorage = row{"Storage and memory", []panel{
	{
		title: "Free disk", is: "At 5 % FacetDiskFull fires; a node that can't write leaves service.", unit: units.PercentUnit, limits: below(.15, .05),
		queries: []query{{
			`facet_disk_free_bytes{instance=~"$node"} / facet_disk_size_bytes{instance=~"$node"}`, "{{instance}}", `facet_disk_free_bytes{instance="a"} 25x20; facet_disk_size_bytes{instance="a"} 100x20`, `{instance="a"} 0.25`,
		}},
	},
	{
		title: "Free disk above the reserve", is: "At 0 the node refuses registrations.", unit: units.BytesIEC, limits: below(4<<30, 1<<30),
		queries: []query{{
			`facet_disk_free_bytes{instance=~"$node"} - facet_disk_reserve_bytes{instance=~"$node"}`, "{{instance}}", `facet_disk_free_bytes{instance="a"} 25x20; facet_disk_reserve_bytes{instance="a"} 10x20`, `{instance="a"} 15`,
		}},
	},
	{
		title: "Files", is: "Size of all groups' files, by kind.", unit: units.BytesIEC,
		queries: []query{{
			`sum by (instance, kind) (facet_group_disk_bytes{instance=~"$node"})`, "{{instance}} {{kind}}",
			`facet_group_disk_bytes{group="1", kind="log", instance="a"} 100x20; facet_group_disk_bytes{group="2", kind="log", instance="a"} 50x20`, `{instance="a", kind="log"} 150`,
		}},
	},
	{
		title: "Memory of events", is: "At 100 % registrations are refused.", unit: units.PercentUnit, limits: above(.85, 1),
		queries: []query{{
			`facet_memory_events_bytes{instance=~"$node"} / facet_memory_budget_bytes{instance=~"$node"}`, "{{instance}}", `facet_memory_events_bytes{instance="a"} 90x20; facet_memory_budget_bytes{instance="a"} 100x20`, `{instance="a"} 0.9`,
		}},
	},
	{
		title: "Memory of the process", is: "All of it, the events outside of Go's heap, and Go's heap.", unit: units.BytesIEC,
		queries: []query{
			{`process_resident_memory_bytes{job="facet", instance=~"$node"}`, "{{instance}} resident", `process_resident_memory_bytes{job="facet", instance="a"} 30x20`, `{job="facet", instance="a"} 30`},
			{`sum by (instance) (facet_memory_arena_bytes{instance=~"$node"})`, "{{instance}} events", `facet_memory_arena_bytes{instance="a", kind="codes"} 4x20; facet_memory_arena_bytes{instance="a", kind="exact"} 6x20`, `{instance="a"} 10`},
			{`go_memstats_heap_inuse_bytes{job="facet", instance=~"$node"}`, "{{instance}} heap", `go_memstats_heap_inuse_bytes{job="facet", instance="a"} 20x20`, `{job="facet", instance="a"} 20`},
		},
	},
	{
		title: "Events", is: "Active events, and deleted entries that still hold a slot.", unit: units.Short,
		queries: []query{
			{`sum(max by (group) (facet_group_events))`, "active", `facet_group_events{group="1", instance="a"} 7x20; facet_group_events{group="1", instance="b"} 6x20; facet_group_events{group="2", instance="a"} 1x20`, `{} 8`},
			{`sum(max by (group) (facet_group_events_deleted))`, "deleted", `facet_group_events_deleted{group="1", instance="a"} 2x20; facet_group_events_deleted{group="2", instance="a"} 1x20`, `{} 3`},
		},
	},
	{
		title: "Entries since the last snapshot", is: "One is made every 4,096 entries.", unit: units.Short, limits: above(10_000, 50_000),
		queries: []query{{
			`max by (instance) (facet_group_log_entries{instance=~"$node"})`, "{{instance}}", `facet_group_log_entries{group="1", instance="a"} 70x20; facet_group_log_entries{group="2", instance="a"} 60x20`, `{instance="a"} 70`,
		}},
	},
	{
		title: "Age of the newest snapshot", is: "The oldest of a node's groups. A group with few writes has an old one, or none.", unit: units.Seconds,
		queries: []query{{
			`max by (instance) (facet_group_snapshot_age_seconds{instance=~"$node"})`, "{{instance}}", `facet_group_snapshot_age_seconds{group="1", instance="a"} 70x20; facet_group_snapshot_age_seconds{group="2", instance="a"} 60x20`, `{instance="a"} 70`,
		}},
	},
}}

var operatorsUpkeep = row{"Upkeep", []panel{
	{
		title: "Certificates end in", is: "The first of all nodes, by certificate. facet cluster renew makes new ones.", now: true, unit: units.Seconds, limits: below(30*day, 3*day),
		queries: []query{{
			`min by (certificate) (facet_certificate_expiry_timestamp_seconds{instance=~"$node"}) - time()`, "{{certificate}}",
			`facet_certificate_expiry_timestamp_seconds{certificate="node", instance="a"} 9000x20; facet_certificate_expiry_timestamp_seconds{certificate="node", instance="b"} 2000x20`, `{certificate="node"} 800`,
		}},
	},
	{
		title: "Newest backup is old by", is: "The newest whole one by the clock. FacetBackupLate fires after two of its intervals.", now: true, unit: units.Seconds,
		queries: []query{{
			`time() - (max(facet_backup_last_timestamp_seconds) > 0)`, "age", `facet_backup_last_timestamp_seconds{instance="a"} 0x20; facet_backup_last_timestamp_seconds{instance="b"} 600x20`, `{} 600`,
		}},
	},
	{
		title: "Rotations not over", is: "Keys of a ring that a node can open with. More than one: give facet cluster rotate again.", now: true, unit: units.Short, limits: above(2, 3),
		queries: []query{{`max by (ring) (facet_keys_held{instance=~"$node"})`, "{{ring}}", `facet_keys_held{ring="gossip", instance="a"} 2x20; facet_keys_held{ring="gossip", instance="b"} 1x20`, `{ring="gossip"} 2`}},
	},
	{
		title: "Gossip refused in an hour", is: "Packets that are malformed or not encrypted with the cluster's gossip key: a stranger, or a node with another key.", now: true, unit: units.Short, limits: above(1, 100),
		queries: []query{{`sum(increase(facet_gossip_refused_total{instance=~"$node"}[1h]))`, "refused", `facet_gossip_refused_total{instance="a"} 0+3x20`, `{} 60`}},
	},
	{
		title: "Last round of erasure took", is: "The longest of a node's groups. A round takes erased data off the disk.", unit: units.Seconds, limits: above(600, 3600),
		queries: []query{{
			`max by (instance) (facet_group_last_erasure_duration_seconds{instance=~"$node"})`, "{{instance}}", `facet_group_last_erasure_duration_seconds{group="1", instance="a"} 2x20; facet_group_last_erasure_duration_seconds{group="2", instance="a"} 5x20`, `{instance="a"} 5`,
		}},
	},
	{
		title: "Tenants near a quota", is: "Tenants that have used 80 % of a quota. facet tenant show names them.", unit: units.Short, limits: above(1, 5),
		queries: []query{{`max by (quota) (facet_tenants_near_quota)`, "{{quota}}", `facet_tenants_near_quota{quota="subjects", instance="a"} 1x20; facet_tenants_near_quota{quota="subjects", instance="b"} 0x20`, `{quota="subjects"} 1`}},
	},
}}

var operatorsJobs = row{"Bulk registration", []panel{
	{
		title: "Files by outcome", is: "refused: the job's record says why.", unit: units.OpsPerSecond,
		queries: []query{{
			`sum by (outcome) (rate(facet_job_files_total{instance=~"$node"}[$__rate_interval]))`, "{{outcome}}", `facet_job_files_total{outcome="registered", instance="a"} 0+60x20; facet_job_files_total{outcome="refused", instance="a"} 0x20`,
			`{outcome="registered"} 1; {outcome="refused"} 0`,
		}},
	},
	{
		title: "Files of open jobs", is: "Files that wait, and files that are lent to workers.", unit: units.Short,
		queries: []query{
			{`sum(facet_job_files_waiting{instance=~"$node"})`, "waiting", `facet_job_files_waiting{instance="a"} 5x20; facet_job_files_waiting{instance="b"} 6x20`, `{} 11`},
			{`sum(facet_job_files_leased{instance=~"$node"})`, "lent", `facet_job_files_leased{instance="a"} 5x20`, `{} 5`},
		},
	},
}}
