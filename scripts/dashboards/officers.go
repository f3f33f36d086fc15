package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

const day = 24 * 3600

// officers is for the people who answer for the service: its security, the protection of data, and
// what was promised to clients. Metrics name no tenant, so neither does this board.
var officers = board{
	name: "officers", title: "facet: officers", since: "now-24h",
	is:   "What the people who answer for a facet cluster ask: does it serve, who uses it, who was refused, has erased data left, are keys, certificates and backups in order.",
	rows: []row{officersService, officersUse, officersRefused, officersErasure, officersKeys, officersIntegrity},
}

// faults are the reasons of refusals that are the service's doing, not the client's.
const faults = `reason!~"rate|quota|signatures"`

var officersService = row{"Does it serve?", []panel{
	{
		title: "Requests that were served", is: "Share of the requests in the chosen time that the service did not refuse for overload or a fault of its own. A client's own excess (rate, quota, wrong signatures) counts as served.",
		now: true, unit: units.PercentUnit, limits: below(.999, .99),
		queries: []query{{
			`1 - sum(increase(facet_requests_refused_total{` + faults + `, instance=~"$node"}[$__range])) / sum(increase(facet_requests_total{instance=~"$node"}[$__range]))`, "served",
			`facet_requests_total{status="200", instance="a"} 0+95x20; facet_requests_total{status="500", instance="b"} 0+5x20; facet_requests_refused_total{reason="fault", instance="b"} 0+5x20; facet_requests_refused_total{reason="rate", instance="b"} 0+7x20`,
			`{} 0.95`,
		}},
	},
	{
		title: "Nodes that serve", is: "Share of the cluster's nodes. The others serve on while a quorum of each group is left.", now: true, unit: units.PercentUnit, limits: below(1, .67),
		queries: []query{{
			`sum(facet_ready) / (max(facet_nodes_alive) + max(facet_nodes_missing))`, "nodes",
			`facet_ready{instance="a"} 1x20; facet_ready{instance="b"} 1x20; facet_nodes_alive{instance="a"} 2x20; facet_nodes_missing{instance="a"} 2x20`, `{} 0.5`,
		}},
	},
	{
		title: "Data out of reach", is: "Groups without a leader: their part of the data can't be read or written now.", now: true, unit: units.Short, limits: above(1, 1),
		queries: []query{{
			`count(max by (group) (facet_group_leader) == 0) or vector(0)`, "groups", `facet_group_leader{group="1", instance="a"} 0x20; facet_group_leader{group="1", instance="b"} 0x20; facet_group_leader{group="2", instance="a"} 1x20`, `{} 1`,
		}},
	},
	{
		title: "Alerts that fire", is: "By severity: page wants somebody now, ticket within the day.", now: true, unit: units.Short, limits: above(1, 1),
		queries: []query{{
			`count by (severity) (ALERTS{alertname=~"Facet.+", alertstate="firing"}) or on () vector(0)`, "{{severity}}",
			`ALERTS{alertname="FacetErasureLate", alertstate="firing", severity="ticket"} 1x20; ALERTS{alertname="Other", alertstate="firing", severity="page"} 1x20`, `{severity="ticket"} 1`,
		}},
	},
	{
		title: "Refused by the service's own doing", is: "Requests an hour that were refused for overload or a fault. fault and unavailable should be 0.", unit: units.Short, limits: above(1, 100),
		queries: []query{{
			`sum by (reason) (increase(facet_requests_refused_total{` + faults + `, instance=~"$node"}[1h]))`, "{{reason}}",
			`facet_requests_refused_total{reason="fault", instance="a"} 0+1x20; facet_requests_refused_total{reason="busy", instance="a"} 0x20; facet_requests_refused_total{reason="quota", instance="a"} 0+1x20`,
			`{reason="fault"} 20; {reason="busy"} 0`,
		}},
	},
	{
		title: "99 of 100 are answered within", is: "Time from a request's headers to its answer.", unit: units.Seconds, limits: above(1, 5),
		queries: []query{{
			`histogram_quantile(0.99, sum by (operation, le) (rate(facet_request_duration_seconds_bucket{operation=~"POST /v1.*/(subjects|face/search|face/verify)", instance=~"$node"}[$__rate_interval])))`, "{{operation}}",
			`facet_request_duration_seconds_bucket{operation="POST /v1.1/face/verify", le="0.25"} 0+98x20; facet_request_duration_seconds_bucket{operation="POST /v1.1/face/verify", le="0.5"} 0+100x20; facet_request_duration_seconds_bucket{operation="POST /v1.1/face/verify", le="+Inf"} 0+100x20; facet_request_duration_seconds_bucket{operation="GET /v1.1/tags", le="+Inf"} 0+100x20`,
			`{operation="POST /v1.1/face/verify"} 0.375`,
		}},
	},
	{
		title: "One more death stops", is: "Shards with no more than a quorum of voters alive, and shards with fewer replicas than wanted.", unit: units.Short, limits: above(1, 1),
		queries: []query{
			{`max(facet_shards_at_risk)`, "at risk", `facet_shards_at_risk{instance="a"} 2x20; facet_shards_at_risk{instance="b"} 1x20`, `{} 2`},
			{`max(facet_shards_under_replicated)`, "too few replicas", `facet_shards_under_replicated{instance="a"} 0x20; facet_shards_under_replicated{instance="b"} 4x20`, `{} 4`},
		},
	},
}}

// The operations by what they are for.
const (
	enrols   = `operation=~"POST /v1(.1)?/subjects|POST /v1.1/subjects/.subjectId./events", status="201"`
	searches = `operation=~"POST /v1(.1)?/face/search", status=~"200|404"`
	verifies = `operation=~"POST /v1(.1)?/face/verify", status=~"200|404"`
	erases   = `operation=~"DELETE /v1(.1)?/subjects/.*", status="204"`
)

var officersUse = row{"Who uses it, and for what?", []panel{
	{
		title: "Faces stored", is: "Active events of all galleries.", now: true, unit: units.Short,
		queries: []query{{
			`sum(max by (group) (facet_group_events))`, "faces", `facet_group_events{group="1", instance="a"} 7x20; facet_group_events{group="1", instance="b"} 6x20; facet_group_events{group="2", instance="a"} 1x20`, `{} 8`,
		}},
	},
	{
		title: "Enrolments", is: "Faces that were enrolled in the chosen time, one by one or by jobs.", now: true, unit: units.Short,
		queries: []query{
			{
				`sum(increase(facet_requests_total{` + enrols + `, instance=~"$node"}[$__range]))`, "requests",
				`facet_requests_total{operation="POST /v1.1/subjects", status="201", instance="a"} 0+1x20; facet_requests_total{operation="POST /v1/subjects", status="201", instance="a"} 0+1x20; facet_requests_total{operation="POST /v1.1/subjects/{subjectId}/events", status="201", instance="b"} 0+1x20; facet_requests_total{operation="POST /v1.1/subjects", status="400", instance="a"} 0+1x20; facet_requests_total{operation="POST /v1.1/subjects/{subjectId}/merge", status="200", instance="a"} 0+1x20`,
				`{} 60`,
			},
			{`sum(increase(facet_job_files_total{outcome="registered", instance=~"$node"}[$__range]))`, "jobs", `facet_job_files_total{outcome="registered", instance="a"} 0+2x20; facet_job_files_total{outcome="refused", instance="a"} 0+2x20`, `{} 40`},
		},
	},
	{
		title: "Searches and verifications", is: "Answered in the chosen time. 404 is an answer, too: nobody was found.", now: true, unit: units.Short,
		queries: []query{
			{
				`sum(increase(facet_requests_total{` + searches + `, instance=~"$node"}[$__range]))`, "searches",
				`facet_requests_total{operation="POST /v1.1/face/search", status="200", instance="a"} 0+1x20; facet_requests_total{operation="POST /v1/face/search", status="404", instance="a"} 0+1x20; facet_requests_total{operation="POST /v1.1/face/search", status="403", instance="a"} 0+1x20`, `{} 40`,
			},
			{
				`sum(increase(facet_requests_total{` + verifies + `, instance=~"$node"}[$__range]))`, "verifications",
				`facet_requests_total{operation="POST /v1.1/face/verify", status="200", instance="a"} 0+1x20; facet_requests_total{operation="POST /v1.1/face/verify", status="400", instance="a"} 0+1x20`, `{} 20`,
			},
		},
	},
	{
		title: "Erasures", is: "Requests of the chosen time that erased a subject or an event.", now: true, unit: units.Short,
		queries: []query{{
			`sum(increase(facet_requests_total{` + erases + `, instance=~"$node"}[$__range])) or vector(0)`, "erased",
			`facet_requests_total{operation="DELETE /v1.1/subjects/{subjectId}", status="204", instance="a"} 0+1x20; facet_requests_total{operation="DELETE /v1.1/subjects/{subjectId}/events/{eventId}", status="204", instance="a"} 0+1x20; facet_requests_total{operation="DELETE /v1.1/subjects/{subjectId}", status="404", instance="a"} 0+1x20`,
			`{} 40`,
		}},
	},
	{
		title: "Enrolments an hour", is: "By operation; a job's files are beside it.", unit: units.Short,
		queries: []query{
			{
				`sum by (operation) (increase(facet_requests_total{` + enrols + `, instance=~"$node"}[1h]))`, "{{operation}}",
				`facet_requests_total{operation="POST /v1.1/subjects", status="201", instance="a"} 0+1x20; facet_requests_total{operation="POST /v1.1/subjects", status="201", instance="b"} 0+1x20`, `{operation="POST /v1.1/subjects"} 40`,
			},
			{`sum by (outcome) (increase(facet_job_files_total{instance=~"$node"}[1h]))`, "jobs: {{outcome}}", `facet_job_files_total{outcome="registered", instance="a"} 0+2x20; facet_job_files_total{outcome="refused", instance="a"} 0+1x20`, `{outcome="registered"} 40; {outcome="refused"} 20`},
		},
	},
	{
		title: "Searches and verifications an hour", is: "By operation and status; 404 is an answer, too: nobody was found.", unit: units.Short,
		queries: []query{{
			`sum by (operation, status) (increase(facet_requests_total{operation=~"POST /v1.*/face/.*", instance=~"$node"}[1h]))`, "{{operation}} {{status}}",
			`facet_requests_total{operation="POST /v1.1/face/search", status="404", instance="a"} 0+1x20; facet_requests_total{operation="POST /v1.1/subjects", status="201", instance="a"} 0+1x20`, `{operation="POST /v1.1/face/search", status="404"} 20`,
		}},
	},
	{
		title: "Changes of galleries and applications an hour", is: "By operation and status. Who made them stands in no metric.", unit: units.Short,
		queries: []query{{
			`sum by (operation, status) (increase(facet_requests_total{operation=~"(POST|PATCH|DELETE) /api/.*", instance=~"$node"}[1h]))`, "{{operation}} {{status}}",
			`facet_requests_total{operation="POST /api/galleries", status="200", instance="a"} 0+1x20; facet_requests_total{operation="GET /api/galleries", status="200", instance="a"} 0+1x20`, `{operation="POST /api/galleries", status="200"} 20`,
		}},
	},
}}

var officersRefused = row{"Who was refused?", []panel{
	{
		title: "Access denied an hour", is: "Requests answered with 403: a wrong signature or time, an unknown or revoked key, a role that does not suffice, another tenant's data, or a disabled tenant.", unit: units.Short, limits: above(10, 1000),
		queries: []query{{
			`sum by (operation) (increase(facet_requests_total{status="403", instance=~"$node"}[1h]))`, "{{operation}}",
			`facet_requests_total{operation="GET /v1.1/subjects", status="403", instance="a"} 0+1x20; facet_requests_total{operation="GET /v1.1/subjects", status="403", instance="b"} 0+1x20; facet_requests_total{operation="GET /v1.1/subjects", status="200", instance="a"} 0+1x20`, `{operation="GET /v1.1/subjects"} 40`,
		}},
	},
	{
		title: "Slowed for wrong signatures an hour", is: "Requests with 429: an address sent too many wrong signatures of one access key. Somebody guesses, or a program has a wrong secret.", unit: units.Short, limits: above(1, 100),
		queries: []query{{`sum by (instance) (increase(facet_requests_refused_total{reason="signatures", instance=~"$node"}[1h]))`, "{{instance}}", `facet_requests_refused_total{reason="signatures", instance="a"} 0+3x20; facet_requests_refused_total{reason="rate", instance="a"} 0+3x20`, `{instance="a"} 60`}},
	},
	{
		title: "Over a rate or a quota an hour", is: "Requests with 429 by the client's own excess. facet tenant show names the tenants.", unit: units.Short, limits: above(100, 10_000),
		queries: []query{{
			`sum by (reason) (increase(facet_requests_refused_total{reason=~"rate|quota", instance=~"$node"}[1h]))`, "{{reason}}",
			`facet_requests_refused_total{reason="rate", instance="a"} 0+3x20; facet_requests_refused_total{reason="quota", instance="a"} 0+1x20; facet_requests_refused_total{reason="fault", instance="a"} 0+1x20`, `{reason="rate"} 60; {reason="quota"} 20`,
		}},
	},
	{
		title: "Tenants near a quota", is: "Tenants that have used 80 % of it, by quota.", unit: units.Short, limits: above(1, 5),
		queries: []query{{`max by (quota) (facet_tenants_near_quota)`, "{{quota}}", `facet_tenants_near_quota{quota="subjects", instance="a"} 1x20; facet_tenants_near_quota{quota="subjects", instance="b"} 0x20`, `{quota="subjects"} 1`}},
	},
	{
		title: "Photos refused an hour", is: "bad: no image that can be read. busy: too many waited. A flood of bad ones is an attack or a broken program.", unit: units.Short, limits: above(100, 10_000),
		queries: []query{{`sum by (outcome) (increase(facet_engine_images_total{outcome!="ok", instance=~"$node"}[1h]))`, "{{outcome}}", `facet_engine_images_total{outcome="bad", instance="a"} 0+1x20; facet_engine_images_total{outcome="ok", instance="a"} 0+1x20`, `{outcome="bad"} 20`}},
	},
	{
		title: "Strangers between the nodes an hour", is: "Packets of gossip that were malformed or not encrypted with the cluster's key.", unit: units.Short, limits: above(1, 100),
		queries: []query{{`sum by (instance) (increase(facet_gossip_refused_total{instance=~"$node"}[1h]))`, "{{instance}}", `facet_gossip_refused_total{instance="a"} 0+3x20`, `{instance="a"} 60`}},
	},
}}
