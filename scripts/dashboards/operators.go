package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// operators is for the people who keep the nodes running.
var operators = board{
	name: "operators", title: "facet: operators", since: "now-3h",
	is: "Nodes, groups, latency, disks, memory, keys and upkeep of a facet cluster. docs/operations.md says what to do.",
	rows: []row{
		operatorsCluster, operatorsRequests, operatorsSearches, operatorsEngine, operatorsGroups, operatorsRepair, operatorsStorage, operatorsUpkeep, operatorsJobs,
	},
}

var operatorsCluster = row{"Cluster", []panel{
	{
		title: "Alerts that fire", is: "By severity. Alerting lists them; each names its chapter of docs/operations.md.", now: true, unit: units.Short, limits: above(1, 1),
		queries: []query{{
			`count by (severity) (ALERTS{alertname=~"Facet.+", alertstate="firing"}) or on () vector(0)`, "{{severity}}",
			`ALERTS{alertname="FacetNodeDown", alertstate="firing", severity="page", instance="a"} 1x20; ALERTS{alertname="FacetNodeDown", alertstate="firing", severity="page", instance="b"} 1x20; ALERTS{alertname="FacetLinkCut", alertstate="pending", severity="ticket"} 1x20; ALERTS{alertname="Other", alertstate="firing", severity="ticket"} 1x20`,
			`{severity="page"} 2`,
		}},
	},
	{
		title: "Nodes", is: "Nodes that serve, nodes that gossip believes alive, and nodes of the records that it misses.", now: true, unit: units.Short,
		queries: []query{
			{`sum(facet_ready)`, "serve", `facet_ready{instance="a"} 1x20; facet_ready{instance="b"} 0x20`, `{} 1`},
			{`max(facet_nodes_alive)`, "alive", `facet_nodes_alive{instance="a"} 3x20; facet_nodes_alive{instance="b"} 2x20`, `{} 3`},
			{`max(facet_nodes_missing)`, "missing", `facet_nodes_missing{instance="a"} 0x20; facet_nodes_missing{instance="b"} 1x20`, `{} 1`},
		},
	},
	{
		title: "Nodes to look at", is: "Nodes that drain, that run twice, whose links are cut, and whose clock agrees with no majority.", now: true, unit: units.Short, limits: above(1, 2),
		queries: []query{
			{`max(facet_nodes_draining)`, "draining", `facet_nodes_draining{instance="a"} 1x20`, `{} 1`},
			{`max(facet_nodes_duplicate)`, "twice", `facet_nodes_duplicate{instance="a"} 0x20`, `{} 0`},
			{`sum(facet_link_cut)`, "cut links", `facet_link_cut{instance="a", peer="b"} 1x20; facet_link_cut{instance="b", peer="a"} 1x20`, `{} 2`},
			{`count(facet_clock_agrees == 0) or vector(0)`, "wrong clocks", `facet_clock_agrees{instance="a"} 1x20; facet_clock_agrees{instance="b"} 0x20`, `{} 1`},
		},
	},
	{
		title: "Shards", is: "Groups without a leader can't be read or written. One more death stops a shard at risk.", now: true, unit: units.Short, limits: above(1, 2),
		queries: []query{
			{`count(max by (group) (facet_group_leader) == 0) or vector(0)`, "no leader", `facet_group_leader{group="1", instance="a"} 0x20; facet_group_leader{group="2", instance="a"} 1x20`, `{} 1`},
			{`max(facet_shards_at_risk)`, "at risk", `facet_shards_at_risk{instance="a"} 2x20`, `{} 2`},
			{`max(facet_shards_under_replicated)`, "under-replicated", `facet_shards_under_replicated{instance="a"} 4x20`, `{} 4`},
			{`max(facet_shards_moving)`, "moving", `facet_shards_moving{instance="a"} 1x20`, `{} 1`},
		},
	},
	{
		title: "Leaders by node", is: "Groups that each node leads. They should be about equal.", unit: units.Short,
		queries: []query{{
			`sum by (instance) (facet_group_leader{instance=~"$node"})`, "{{instance}}",
			`facet_group_leader{group="0", instance="a"} 1x20; facet_group_leader{group="1", instance="a"} 1x20; facet_group_leader{group="1", instance="b"} 0x20`,
			`{instance="a"} 2; {instance="b"} 0`,
		}},
	},
	{
		title: "Versions and model packs", is: "How many nodes run each. More than one line for hours is an unfinished upgrade.", unit: units.Short,
		queries: []query{{
			`count by (version, pack) (facet_build_info)`, "{{version}} {{pack}}",
			`facet_build_info{version="0.6.0", pack="p", instance="a"} 1x20; facet_build_info{version="0.6.0", pack="p", instance="b"} 1x20`, `{version="0.6.0", pack="p"} 2`,
		}},
	},
	{
		title: "Clock against Prometheus", is: "A request is refused when client and node are five minutes apart.", unit: units.Seconds, limits: above(2, 5),
		queries: []query{{
			`abs(facet_clock_seconds{instance=~"$node"} - timestamp(facet_clock_seconds{instance=~"$node"}))`, "{{instance}}", `facet_clock_seconds{instance="a"} -3+60x20`, `{instance="a"} 3`,
		}},
	},
}}

var operatorsRequests = row{"Requests", []panel{
	{
		title: "Requests by operation", is: "Answered requests, by method and path of the interface.", unit: units.RequestsPerSecond,
		queries: []query{{
			`sum by (operation) (rate(facet_requests_total{instance=~"$node"}[$__rate_interval]))`, "{{operation}}",
			`facet_requests_total{operation="POST /v1.1/face/search", status="200", instance="a"} 0+60x20; facet_requests_total{operation="POST /v1.1/face/search", status="404", instance="b"} 0+120x20`,
			`{operation="POST /v1.1/face/search"} 3`,
		}},
	},
	{
		title: "Requests by status", is: "4xx is the client's doing, except 429 for too much at once; 5xx is the service's.", unit: units.RequestsPerSecond,
		queries: []query{{
			`sum by (status) (rate(facet_requests_total{instance=~"$node"}[$__rate_interval]))`, "{{status}}",
			`facet_requests_total{operation="x", status="200", instance="a"} 0+60x20; facet_requests_total{operation="y", status="200", instance="b"} 0+60x20; facet_requests_total{operation="y", status="403"} 0+6x20`,
			`{status="200"} 2; {status="403"} 0.1`,
		}},
	},
	{
		title: "Refused requests", is: "429 and 5xx by reason; docs/metrics.md explains the reasons.", unit: units.RequestsPerSecond,
		queries: []query{{
			`sum by (reason) (rate(facet_requests_refused_total{instance=~"$node"}[$__rate_interval]))`, "{{reason}}",
			`facet_requests_refused_total{reason="busy", instance="a"} 0+30x20; facet_requests_refused_total{reason="rate", instance="a"} 0x20`, `{reason="busy"} 0.5; {reason="rate"} 0`,
		}},
	},
	{
		title: "Half of the requests take less than", is: "Median from the headers to the answer, the reading of the body included.", unit: units.Seconds, limits: above(.5, 1),
		queries: []query{{
			`histogram_quantile(0.5, sum by (operation, le) (rate(facet_request_duration_seconds_bucket{instance=~"$node"}[$__rate_interval])))`, "{{operation}}",
			`facet_request_duration_seconds_bucket{operation="x", le="0.1"} 0+60x20; facet_request_duration_seconds_bucket{operation="x", le="0.25"} 0+120x20; facet_request_duration_seconds_bucket{operation="x", le="+Inf"} 0+120x20`,
			`{operation="x"} 0.1`,
		}},
	},
	{
		title: "99 of 100 requests take less than", is: "99th percentile from the headers to the answer. A request is given up after 30 s.", unit: units.Seconds, limits: above(1, 5),
		queries: []query{{
			`histogram_quantile(0.99, sum by (operation, le) (rate(facet_request_duration_seconds_bucket{instance=~"$node"}[$__rate_interval])))`, "{{operation}}",
			`facet_request_duration_seconds_bucket{operation="x", le="1"} 0+98x20; facet_request_duration_seconds_bucket{operation="x", le="2.5"} 0+100x20; facet_request_duration_seconds_bucket{operation="x", le="+Inf"} 0+100x20`,
			`{operation="x"} 1.75`,
		}},
	},
	{
		title: "In flight and connections", is: "Requests that are being answered, and open connections of clients.", unit: units.Short,
		queries: []query{
			{`sum by (instance) (facet_requests_in_flight{instance=~"$node"})`, "{{instance}} in flight", `facet_requests_in_flight{instance="a"} 4x20`, `{instance="a"} 4`},
			{`sum by (instance) (facet_connections{instance=~"$node"})`, "{{instance}} connections", `facet_connections{instance="a"} 40x20`, `{instance="a"} 40`},
		},
	},
	{
		title: "Memory for bodies", is: "How much of the memory for bodies is taken. At 100 % requests get 429.", unit: units.PercentUnit, limits: above(.7, .9),
		queries: []query{{
			`facet_bodies_bytes{instance=~"$node"} / facet_bodies_limit_bytes{instance=~"$node"}`, "{{instance}}", `facet_bodies_bytes{instance="a"} 10x20; facet_bodies_limit_bytes{instance="a"} 40x20`, `{instance="a"} 0.25`,
		}},
	},
	{
		title: "Bytes of bodies", is: "What clients send and get.", unit: units.BytesPerSecondSI,
		queries: []query{
			{`sum(rate(facet_request_body_bytes_total{instance=~"$node"}[$__rate_interval]))`, "requests", `facet_request_body_bytes_total{instance="a"} 0+600x20; facet_request_body_bytes_total{instance="b"} 0+600x20`, `{} 20`},
			{`sum(rate(facet_answer_body_bytes_total{instance=~"$node"}[$__rate_interval]))`, "answers", `facet_answer_body_bytes_total{instance="a"} 0+60x20`, `{} 1`},
		},
	},
}}

var operatorsSearches = row{"Searches", []panel{
	{
		title: "Mean time of a search by stage", is: "extract: from the image to the template. shards: the slowest shard, network included. merge: the rest.", unit: units.Seconds,
		queries: []query{{
			`sum by (stage) (rate(facet_search_duration_seconds_sum{instance=~"$node"}[$__rate_interval])) / sum by (stage) (rate(facet_search_duration_seconds_count{instance=~"$node"}[$__rate_interval]))`, "{{stage}}",
			`facet_search_duration_seconds_sum{stage="extract", instance="a"} 0+6x20; facet_search_duration_seconds_count{stage="extract", instance="a"} 0+60x20; facet_search_duration_seconds_sum{stage="merge", instance="a"} 0x20; facet_search_duration_seconds_count{stage="merge", instance="a"} 0+60x20`,
			`{stage="extract"} 0.1; {stage="merge"} 0`,
		}},
	},
	{
		title: "99 of 100 shards answer within", is: "Time of a shard's replica for its part of a search, without network.", unit: units.Seconds, limits: above(.25, 1),
		queries: []query{{
			`histogram_quantile(0.99, sum by (instance, le) (rate(facet_shard_search_duration_seconds_bucket{instance=~"$node"}[$__rate_interval])))`, "{{instance}}",
			`facet_shard_search_duration_seconds_bucket{instance="a", le="0.01"} 0+98x20; facet_shard_search_duration_seconds_bucket{instance="a", le="0.05"} 0+100x20; facet_shard_search_duration_seconds_bucket{instance="a", le="+Inf"} 0+100x20`,
			`{instance="a"} 0.03`,
		}},
	},
	{
		title: "Events searched", is: "Active events of the slices that were searched, a second.", unit: units.CountsPerSecond,
		queries: []query{{`sum by (instance) (rate(facet_search_rows_total{instance=~"$node"}[$__rate_interval]))`, "{{instance}}", `facet_search_rows_total{instance="a"} 0+6000x20`, `{instance="a"} 100`}},
	},
}}

var operatorsEngine = row{"Face engine", []panel{
	{
		title: "Queue of the engine", is: "How full the line before the engine is. At 100 % an image gets 429.", unit: units.PercentUnit, limits: above(.5, .9),
		queries: []query{{
			`facet_engine_waiting{instance=~"$node"} / facet_engine_waiting_limit{instance=~"$node"}`, "{{instance}}", `facet_engine_waiting{instance="a"} 8x20; facet_engine_waiting_limit{instance="a"} 16x20`, `{instance="a"} 0.5`,
		}},
	},
	{
		title: "Images by outcome", is: "bad: no image that can be read. busy: refused, too many wait. fault: a fault of the engine.", unit: units.OpsPerSecond,
		queries: []query{{
			`sum by (outcome) (rate(facet_engine_images_total{instance=~"$node"}[$__rate_interval]))`, "{{outcome}}",
			`facet_engine_images_total{outcome="ok", instance="a"} 0+60x20; facet_engine_images_total{outcome="ok", instance="b"} 0+60x20; facet_engine_images_total{outcome="bad", instance="b"} 0x20`, `{outcome="ok"} 2; {outcome="bad"} 0`,
		}},
	},
	{
		title: "Mean time of an image", is: "Waiting for a worker included, refused images left out.", unit: units.Seconds, limits: above(.5, 1),
		queries: []query{{
			`sum by (instance) (rate(facet_engine_image_duration_seconds_sum{instance=~"$node"}[$__rate_interval])) / sum by (instance) (rate(facet_engine_image_duration_seconds_count{instance=~"$node"}[$__rate_interval]))`, "{{instance}}",
			`facet_engine_image_duration_seconds_sum{instance="a"} 0+3x20; facet_engine_image_duration_seconds_count{instance="a"} 0+60x20`, `{instance="a"} 0.05`,
		}},
	},
	{
		title: "Runs of the models", is: "By model: detector, landmarks, embedder.", unit: units.OpsPerSecond,
		queries: []query{{
			`sum by (model) (rate(facet_engine_model_runs_total{instance=~"$node"}[$__rate_interval]))`, "{{model}}", `facet_engine_model_runs_total{model="detector", instance="a"} 0+120x20; facet_engine_model_runs_total{model="embedder", instance="a"} 0+60x20`,
			`{model="detector"} 2; {model="embedder"} 1`,
		}},
	},
	{
		title: "Nodes by JPEG decoder", is: "Without turbo, large photos take several times as long.", unit: units.Short,
		queries: []query{{`count by (jpeg_decoder) (facet_engine_info)`, "{{jpeg_decoder}}", `facet_engine_info{jpeg_decoder="turbo", instance="a"} 1x20; facet_engine_info{jpeg_decoder="turbo", instance="b"} 1x20`, `{jpeg_decoder="turbo"} 2`}},
	},
}}
