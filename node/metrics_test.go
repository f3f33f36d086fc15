package node_test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
	"facet/node/metrics"
	"facet/node/nodetest"
	"facet/node/wire"
)

// adminGet asks a node's admin port without a certificate.
func adminGet(t testing.TB, m *nodetest.Member, path string) (status int, body string) {
	t.Helper()
	return adminCall(t, m, nil, http.MethodGet, path)
}

// scrape returns a node's samples by name and labels, as Prometheus would read them.
func scrape(t testing.TB, m *nodetest.Member) map[string]float64 {
	t.Helper()
	status, body := adminGet(t, m, wire.PathMetrics)
	if status != http.StatusOK {
		t.Fatalf("metrics: %d %s", status, body)
	}
	return samplesIn(t, body)
}

// samplesIn returns the samples in the answer of a node.
func samplesIn(t testing.TB, body string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out[line[:at]] = v
	}
	return out
}

// sum adds up the samples of a name whose labels hold all of with.
func sum(samples map[string]float64, name string, with ...string) (total float64) {
	for sample, v := range samples {
		n, labels, _ := strings.Cut(sample, "{")
		if n != name {
			continue
		}
		all := true
		for _, w := range with {
			all = all && strings.Contains(labels, w)
		}
		if all {
			total += v
		}
	}
	return total
}

// within waits until ok is.
func within(t testing.TB, most time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(most); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, most)
		}
	}
}

func TestMetricsCountWork(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Bucket: "file://" + t.TempDir()}, func(t *testing.T, c *nodetest.Cluster) {
		client := c.Client("acme")
		gallery(t, client, c.Nodes[0].URL, "staff", 100)
		const people, searches = 5, 3
		for i := range people {
			enrol(t, client, c.Nodes[0].URL, "person "+strconv.Itoa(i))
		}
		for range searches {
			find(t, client, c.Nodes[0].URL, "person 1")
		}
		client.Call(t, c.Nodes[0].URL, "GET", "/secret-path/4711", nil)
		var all []map[string]float64
		within(t, movesTimeout, "the nodes are ready, know all leaders, and apply what was committed", func() bool {
			all = nil
			var events, ready, known float64
			for _, m := range c.Nodes {
				s := scrape(t, m)
				events, ready, known = events+sum(s, "facet_group_events"), ready+s["facet_ready"], known+sum(s, "facet_group_leader_known")
				all = append(all, s)
			}
			return events == 3*people && ready == 3 && known == 3*5
		})
		first := all[0]
		f := func(got, want float64, what string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		f(sum(first, "facet_requests_total", `operation="POST /v1.1/subjects"`, `status="201"`), people, "registrations")
		f(sum(first, "facet_request_duration_seconds_count", `operation="POST /v1.1/face/search"`), searches, "searches")
		f(sum(first, "facet_requests_total", `operation="none"`, `status="404"`), 1, "unknown operations")
		f(sum(first, "facet_engine_images_total", `outcome="ok"`), people+searches, "images")
		f(sum(first, "facet_search_duration_seconds_count", `stage="merge"`), searches, "merges")
		var rows, leaders, led, proposals float64
		for _, s := range all {
			rows += s["facet_search_rows_total"]
			leaders += sum(s, "facet_group_leader")
			led += sum(s, "facet_group_leaderships_total")
			proposals += sum(s, "facet_group_proposal_duration_seconds_count", `group="0"`)
			f(s["facet_nodes_alive"], 3, "nodes alive")
			f(s["facet_shards_under_replicated"], 0, "shards with fewer replicas than wanted")
			if left := sum(s, "facet_certificate_expiry_timestamp_seconds", `"node"`) - float64(time.Now().Unix()); left < 300*24*3600 {
				t.Errorf("the certificate is good for %v seconds", left)
			}
		}
		if rows < people*searches { // a slow replica's rows are searched twice
			t.Errorf("%v rows were searched, want %d or more", rows, people*searches)
		}
		f(leaders, 5, "leaders of five groups")
		if led < 5 || proposals < 3 {
			t.Errorf("%v leaderships, %v proposals in meta", led, proposals)
		}
		catalogueHolds(t, first)
	})
}

// TestMetricsShowKeys: how many keys a ring has, and when the newest was made, before, during and
// after a rotation.
func TestMetricsShowKeys(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		f := func(ring string, held float64, made time.Time) {
			t.Helper()
			s := scrape(t, c.Nodes[0])
			if got := s[`facet_keys_held{ring="`+ring+`"}`]; got != held {
				t.Errorf("%s: %v keys, want %v", ring, got, held)
			}
			if got := s[`facet_key_made_timestamp_seconds{ring="`+ring+`"}`]; got != float64(made.Unix()) {
				t.Errorf("%s: made at %f, want %d", ring, got, made.Unix())
			}
		}
		a, err := c.Nodes[0].Node.Rotate(t.Context(), wire.RingOrder{Ring: wire.RingGossip})
		must.Do(t, err)
		f(wire.RingGossip, 1, a.Key.Since)
		// A second line, as a rotation leaves it that did not end.
		c.Stop(0)
		made := time.Date(2090, 1, 2, 3, 4, 5, 0, time.UTC)
		file, err := os.OpenFile(c.Nodes[0].Config.ClusterKeyFile, os.O_APPEND|os.O_WRONLY, 0)
		must.Do(t, err)
		if _, err := file.WriteString("\n" + strings.Repeat("5a", 32) + " " + made.Format(time.RFC3339) + "\n"); err != nil {
			t.Fatal(err)
		}
		file.Close()
		c.Restart(0)
		c.WaitReady()
		f(wire.RingCluster, 2, made)
		f(wire.RingGossip, 1, a.Key.Since)
	})
}

// TestMetricsReportLastErasure: of each group here, meta included.
func TestMetricsReportLastErasure(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		begin := time.Now()
		c := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 2, EraseWithin: 2 * time.Second})
		client := c.Client("acme")
		gallery(t, client, c.Nodes[0].URL, "staff", 100)
		for i := range 8 { // on both shards
			enrol(t, client, c.Nodes[0].URL, "person "+strconv.Itoa(i))
		}
		rounds := func() (at [3]float64) {
			s := scrape(t, c.Nodes[0])
			for i := range at {
				label := `{group="` + strconv.Itoa(i) + `"}`
				if _, took := s["facet_group_last_erasure_duration_seconds"+label]; took {
					at[i] = s["facet_group_last_erasure_timestamp_seconds"+label]
				}
			}
			return at
		}
		var first [3]float64
		within(t, 20*time.Second, "a round of every group", func() bool {
			first = rounds()
			return slices.Min(first[:]) > 0
		})
		if now := float64(time.Now().UnixNano()) / 1e9; slices.Min(first[:]) < float64(begin.Unix()) || slices.Max(first[:]) > now {
			t.Errorf("rounds ended at %v, want between %v and %v", first, begin.Unix(), now)
		}
		within(t, 20*time.Second, "another round of every group", func() bool {
			at := rounds()
			return at[0] > first[0] && at[1] > first[1] && at[2] > first[2]
		})
	})
}

// catalogueHolds: every sample is in the catalogue, and nearly all of it was there.
func catalogueHolds(t *testing.T, samples map[string]float64) {
	t.Helper()
	found := map[string]bool{}
	for sample := range samples {
		name, labels, _ := strings.Cut(strings.TrimSuffix(sample, "}"), "{")
		if !strings.HasPrefix(name, "facet_") {
			continue
		}
		d, ok := metrics.Find(name)
		if !ok {
			t.Errorf("%s is not in the catalogue", sample)
			continue
		}
		found[d.Name] = true
		for _, l := range d.Labels {
			if !strings.Contains(labels, l+`="`) {
				t.Errorf("%s has no label %s", sample, l)
			}
		}
		if strings.Contains(sample, "4711") || strings.Contains(sample, "acme") {
			t.Errorf("%s tells what was asked for", sample)
		}
	}
	// What needs a snapshot or the real engine.
	rare := map[string]bool{
		"facet_group_snapshot_age_seconds": true,
		"facet_engine_waiting":             true, "facet_engine_waiting_limit": true, "facet_engine_model_runs_total": true,
	}
	for _, s := range metrics.Catalogue {
		for _, d := range s.Metrics {
			if !found[d.Name] && !rare[d.Name] {
				t.Errorf("%s was not there", d.Name)
			}
		}
	}
}

func TestMetricsShowDeadNode(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Away: time.Hour}, func(t *testing.T, c *nodetest.Cluster) {
		for _, path := range []string{wire.PathLive, wire.PathReady} {
			if status, body := adminGet(t, c.Nodes[0], path); status != 200 {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
		c.Stop(2)
		within(t, 20*time.Second, "the missing node is counted", func() bool {
			s := scrape(t, c.Nodes[0])
			return s["facet_nodes_missing"] == 1 && s["facet_nodes_alive"] == 2 && s["facet_replicas_missing"] == 4 &&
				s["facet_shards_under_replicated"] == 4 && s["facet_shards_at_risk"] == 4 && s["facet_ready"] == 1
		})
		c.Stop(1)
		within(t, 20*time.Second, "a node without a quorum lives and is not ready", func() bool {
			live, _ := adminGet(t, c.Nodes[0], wire.PathLive)
			ready, why := adminGet(t, c.Nodes[0], wire.PathReady)
			return live == 200 && ready == 503 && strings.Contains(why, "has no leader") && scrape(t, c.Nodes[0])["facet_ready"] == 0
		})
	})
}

// TestDashboardMetricsExist: what dashboards and alerts name and does not
// come with work (the catalogue's counters and histograms with labels) is there from the
// start, the Go runtime's and the process's own included.
func TestDashboardMetricsExist(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		there := map[string]bool{}
		for sample := range scrape(t, c.Nodes[0]) {
			name, _, _ := strings.Cut(sample, "{")
			there[name] = true
		}
		form := regexp.MustCompile(`\b(?:facet|go|process)_[a-z_]+\b`)
		looked := map[string]bool{}
		for _, file := range []string{"grafana/operators.json", "grafana/officers.json", "prometheus/alerts.yml"} {
			raw, err := os.ReadFile(filepath.Join("..", "deploy", filepath.FromSlash(file)))
			must.Do(t, err)
			for line := range strings.SplitSeq(string(raw), "\n") {
				if !strings.Contains(line, "expr") {
					continue
				}
				for _, name := range form.FindAllString(line, -1) {
					looked[name] = true
				}
			}
		}
		if len(looked) < 30 {
			t.Fatalf("only %d metrics are looked at", len(looked))
		}
		for name := range looked {
			d, own := metrics.Find(name)
			comes := own && len(d.Labels) > 0 && d.Kind != metrics.Gauge // with the first of its kind
			// The engine of this node runs no models, and the group has no snapshot yet.
			absent := name == "facet_engine_waiting" || name == "facet_engine_waiting_limit" || name == "facet_group_snapshot_age_seconds"
			if !there[name] && !comes && !absent {
				t.Errorf("dashboards or alerts look at %s, which a live node does not have", name)
			}
		}
	})
}
