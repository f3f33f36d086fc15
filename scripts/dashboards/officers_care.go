package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// The newest round of erasure of each replica, also of one whose node was restarted or is down
// since less than a day; 0 without one. And how long it took.
const (
	rounds    = `max_over_time(facet_group_last_erasure_timestamp_seconds[1d])`
	roundTook = `max_over_time(facet_group_last_erasure_duration_seconds[1d])`
)

var officersErasure = row{"Has erased and expired data left?", []panel{
	{
		title: "Left every disk if erased before", is: "What was erased or expired before this time is on no disk of a node that ran in the last day: a round takes it out of segments and snapshots, and entries of more than six hours out of the log. It should be less than 24 hours ago. Backups keep it until the last one of that time is removed.",
		now: true, unit: units.DateTimeFromNow, zero: "a replica had no round",
		queries: []query{{
			`1000 * clamp_min(min(` + rounds + ` - ` + roundTook + `) - 6 * 3600, 0)`, "erased before",
			`facet_group_last_erasure_timestamp_seconds{group="1", instance="a"} 90000x20; facet_group_last_erasure_duration_seconds{group="1", instance="a"} 40x20; facet_group_last_erasure_timestamp_seconds{group="1", instance="b"} 86400x10 0x10; facet_group_last_erasure_duration_seconds{group="1", instance="b"} 20x10 0x10`,
			`{} 64780000`,
		}},
	},
	{
		title: "Replicas without a round today", is: "Replicas whose node ended no round of erasure in a day. A first one comes within an hour of a start.", now: true, unit: units.Short, limits: above(1, 1),
		queries: []query{{
			`count(` + rounds + ` == 0) or vector(0)`, "replicas", `facet_group_last_erasure_timestamp_seconds{group="1", instance="a"} 0x20; facet_group_last_erasure_timestamp_seconds{group="2", instance="a"} 100x10 0x10`, `{} 1`,
		}},
	},
	{
		title: "Due and not expired", is: "Events that are due and wait because the node's clock agrees with no majority.", now: true, unit: units.Short, limits: above(1, 1),
		queries: []query{{`sum(facet_events_expiry_waiting)`, "events", `facet_events_expiry_waiting{instance="a"} 1x20; facet_events_expiry_waiting{instance="b"} 2x20`, `{} 3`}},
	},
	{
		title: "Next expiry", is: "When the next event is due.", now: true, unit: units.DateTimeFromNow, zero: "none",
		queries: []query{{
			`1000 * min(facet_expiry_next_timestamp_seconds > 0) or vector(0)`, "next", `facet_expiry_next_timestamp_seconds{instance="a"} 0x20; facet_expiry_next_timestamp_seconds{instance="b"} 5000x20; facet_expiry_next_timestamp_seconds{instance="c"} 6000x20`, `{} 5000000`,
		}},
	},
	{
		title: "Time since the last round of erasure", is: "The oldest of a node's groups; one without a round today is missing here. One is due every six hours, the bound is 24.", unit: units.Seconds, limits: above(12*3600, day),
		queries: []query{{
			`time() - min by (instance) (max_over_time(facet_group_last_erasure_timestamp_seconds{instance=~"$node"}[1d]) > 0)`, "{{instance}}",
			`facet_group_last_erasure_timestamp_seconds{group="1", instance="a"} 900x20; facet_group_last_erasure_timestamp_seconds{group="2", instance="a"} 600x10 0x10; facet_group_last_erasure_timestamp_seconds{group="3", instance="a"} 0x20`, `{instance="a"} 600`,
		}},
	},
	{
		title: "Erasures an hour", is: "By operation: of subjects, events and galleries.", unit: units.Short,
		queries: []query{{
			`sum by (operation) (increase(facet_requests_total{operation=~"DELETE /(v1|v1.1|api)/(subjects|galleries)/.*", status=~"2..", instance=~"$node"}[1h]))`, "{{operation}}",
			`facet_requests_total{operation="DELETE /v1.1/subjects/{subjectId}", status="204", instance="a"} 0+1x20; facet_requests_total{operation="DELETE /api/galleries/{galleryId}", status="200", instance="a"} 0+1x20; facet_requests_total{operation="DELETE /v1.1/tags/{name?}", status="200", instance="a"} 0+1x20`,
			`{operation="DELETE /v1.1/subjects/{subjectId}"} 20; {operation="DELETE /api/galleries/{galleryId}"} 20`,
		}},
	},
	{
		title: "Expired an hour", is: "Events that left because their time was over.", unit: units.Short,
		queries: []query{{`sum(increase(facet_events_expired_total{instance=~"$node"}[1h]))`, "events", `facet_events_expired_total{instance="a"} 0+1x20; facet_events_expired_total{instance="b"} 0+1x20`, `{} 40`}},
	},
	{
		title: "Events with a time of their own", is: "Active events that have an expires of their own, of all active events.", unit: units.Short,
		queries: []query{
			{`sum(max by (group) (facet_group_events_timed))`, "with a time", `facet_group_events_timed{group="1", instance="a"} 3x20; facet_group_events_timed{group="1", instance="b"} 3x20; facet_group_events_timed{group="2", instance="b"} 1x20`, `{} 4`},
			{`sum(max by (group) (facet_group_events))`, "all", `facet_group_events{group="1", instance="a"} 7x20; facet_group_events{group="1", instance="b"} 7x20`, `{} 7`},
		},
	},
}}

var officersKeys = row{"Are keys, certificates and backups in order?", []panel{
	{
		title: "Keys are old by", is: "Since the newest key of a ring was made. facet cluster rotate replaces it; a year is a common limit.", now: true, unit: units.Seconds, limits: above(365*day, 730*day),
		queries: []query{{
			`time() - min by (ring) (facet_key_made_timestamp_seconds)`, "{{ring}}", `facet_key_made_timestamp_seconds{ring="cluster", instance="a"} 200x20; facet_key_made_timestamp_seconds{ring="cluster", instance="b"} 600x20`, `{ring="cluster"} 1000`,
		}},
	},
	{
		title: "Rotations not over", is: "Keys of a ring that still open data or gossip. More than one: the old key still works.", now: true, unit: units.Short, limits: above(2, 3),
		queries: []query{{`max by (ring) (facet_keys_held)`, "{{ring}}", `facet_keys_held{ring="cluster", instance="a"} 2x20; facet_keys_held{ring="cluster", instance="b"} 1x20`, `{ring="cluster"} 2`}},
	},
	{
		title: "Certificates end in", is: "The first of all nodes, by certificate.", now: true, unit: units.Seconds, limits: below(30*day, 3*day),
		queries: []query{{
			`min by (certificate) (facet_certificate_expiry_timestamp_seconds) - time()`, "{{certificate}}",
			`facet_certificate_expiry_timestamp_seconds{certificate="node", instance="a"} 9000x20; facet_certificate_expiry_timestamp_seconds{certificate="node", instance="b"} 2000x20; facet_certificate_expiry_timestamp_seconds{certificate="authority", instance="b"} 3000x20`,
			`{certificate="node"} 800; {certificate="authority"} 1800`,
		}},
	},
	{
		title: "Newest backup", is: "When the newest whole backup by the clock was made.", now: true, unit: units.DateTimeFromNow, zero: "none seen",
		queries: []query{{`1000 * max(facet_backup_last_timestamp_seconds)`, "made", `facet_backup_last_timestamp_seconds{instance="a"} 0x20; facet_backup_last_timestamp_seconds{instance="b"} 600x20`, `{} 600000`}},
	},
	{
		title: "Age of the newest backup in intervals", is: "1 is on time; from 2 on FacetBackupLate fires. Without a schedule there is nothing here.", unit: units.Number, limits: above(1.5, 2),
		queries: []query{{
			`(time() - max(facet_backup_last_timestamp_seconds)) / (max(facet_backup_interval_seconds) > 0)`, "intervals",
			`facet_backup_last_timestamp_seconds{instance="a"} 0x20; facet_backup_last_timestamp_seconds{instance="b"} 600x20; facet_backup_interval_seconds{instance="a"} 300x20`, `{} 2`,
		}},
	},
	{
		title: "Versions", is: "How many nodes run each version.", unit: units.Short,
		queries: []query{{`count by (version) (facet_build_info)`, "{{version}}", `facet_build_info{version="0.6.0", pack="p", instance="a"} 1x20; facet_build_info{version="0.6.0", pack="p", instance="b"} 1x20`, `{version="0.6.0"} 2`}},
	},
}}

var officersIntegrity = row{"Is the data whole?", []panel{
	{
		title: "Replicas that differed", is: "In the chosen time: replicas whose state was not the majority's. Each was rebuilt from its peers. Anything but 0 is a defect to report.", now: true, unit: units.Short, limits: above(1, 1),
		queries: []query{{`sum(increase(facet_replicas_diverged_total{instance=~"$node"}[$__range]))`, "replicas", `facet_replicas_diverged_total{instance="a"} 0x20; facet_replicas_diverged_total{instance="b"} 0+1x20`, `{} 20`}},
	},
	{
		title: "Replicas out of service", is: "Damaged, or with a full disk. They are rebuilt from their peers.", now: true, unit: units.Short, limits: above(1, 3),
		queries: []query{{`sum(facet_replicas_out_of_service)`, "replicas", `facet_replicas_out_of_service{instance="a"} 1x20; facet_replicas_out_of_service{instance="b"} 1x20`, `{} 2`}},
	},
	{
		title: "State lost or rolled back", is: "Replicas and nodes that went back to an older state in the last hour, and groups of which one node alone has acknowledged writes.", now: true, unit: units.Short, limits: above(1, 1),
		queries: []query{
			{`sum(facet_state_lost)`, "lost", `facet_state_lost{instance="a"} 1x20; facet_state_lost{instance="b"} 1x20`, `{} 2`},
			{`sum(facet_history_rewritten)`, "rewritten", `facet_history_rewritten{instance="a"} 1x20; facet_history_rewritten{instance="b"} 0x20`, `{} 1`},
		},
	},
	{
		title: "Clocks that agree", is: "Share of the nodes whose clock is within 5 seconds of a majority's. Signatures, times of events and expiry need them.", now: true, unit: units.PercentUnit, limits: below(1, .67),
		queries: []query{{`avg(facet_clock_agrees)`, "nodes", `facet_clock_agrees{instance="a"} 1x20; facet_clock_agrees{instance="b"} 0x20`, `{} 0.5`}},
	},
	{
		title: "Comparisons of replicas an hour", is: "How often leaders compared the state of all replicas of a group. It should never be 0 for hours.", unit: units.Short,
		queries: []query{{`sum(increase(facet_group_comparisons_total{instance=~"$node"}[1h]))`, "comparisons", `facet_group_comparisons_total{instance="a"} 0+1x20; facet_group_comparisons_total{instance="b"} 0+1x20`, `{} 40`}},
	},
	{
		title: "Replicas that miss", is: "Replicas of shards whose node is missing, or for which there are too few nodes.", unit: units.Short, limits: above(1, 3),
		queries: []query{{`max(facet_replicas_missing)`, "replicas", `facet_replicas_missing{instance="a"} 4x20; facet_replicas_missing{instance="b"} 3x20`, `{} 4`}},
	},
}}
