package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/internal/answers"
	"facet/internal/must"
	"facet/internal/testkit"
	"facet/node/audit/entry"
	"facet/node/cert"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/node/wire"
	"facet/router"
)

// until calls f until it is true, for ten seconds.
func until(f func() bool) bool {
	for late := time.Now().Add(10 * time.Second); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			return false
		}
	}
	return true
}

// acts returns the acts of a log with an operation.
func acts(records []*entry.Record, operation string) (list []*entry.Record) {
	for _, r := range records {
		if r.Kind == entry.Act && r.Operation == operation {
			list = append(list, r)
		}
	}
	return list
}

// The cluster's log has the signing key's making once, each replacement of a key, and each round of erasure.
func TestClusterRecordsItsActs(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		const erase = 4 * time.Second
		c := nodetest.Start(t, nodetest.Options{Shards: 2, EraseWithin: erase})
		waitNewest(t, c)
		for _, ring := range []string{wire.RingCluster, wire.RingGossip} {
			if _, err := c.Nodes[1].Node.Rotate(t.Context(), wire.RingOrder{Ring: ring}); err != nil {
				t.Fatal(err)
			}
		}
		looks := []func(){}
		for _, m := range c.Nodes {
			looks = append(looks, m.Node.Rounds())
		}
		named := func(operation string) (list []answers.AuditRecord) {
			for _, r := range c.Nodes[2].Node.ClusterRecords(t) {
				if r.Kind == entry.Act.String() && r.Operation == operation {
					list = append(list, r)
				}
			}
			return list
		}
		rounds := func() map[string]int { // by node and group
			got := map[string]int{}
			for _, r := range named("erase removed data") {
				for _, s := range r.Searched {
					got[fmt.Sprint(r.Reason, " ", s.Shard)]++
				}
			}
			return got
		}
		if !until(func() bool {
			for _, look := range looks {
				look()
			}
			return len(rounds()) == 9
		}) {
			t.Errorf("rounds of three nodes and three groups have the records %v", rounds())
		}
		if made := named("make the signing key"); len(made) != 1 {
			t.Errorf("the making of the signing key has the records %+v", made)
		}
		var about []string
		for _, r := range named("replace a shared key") {
			about = append(about, r.Reason)
		}
		if len(about) != 2 || !strings.HasPrefix(about[1], "cluster key ") || !strings.HasPrefix(about[0], "gossip key ") {
			t.Errorf("the replacements of keys have the records %q", about)
		}
	})
}

// Wrong requests from many goroutines to all nodes are counted, each once, by reason. Right ones are not.
func TestRefusedRequestsAreCounted(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, c *nodetest.Cluster) {
		waitNewest(t, c)
		right := c.Client("bank")
		wrong := right.Keyed(router.AccessKey{ID: "FACETNOSUCHKEY000000", Secret: "x"})
		const each = 15
		var work sync.WaitGroup
		for i := range 3 {
			for range 4 {
				work.Go(func() {
					for range each {
						send(t, wrong, c.Nodes[i].URL, http.StatusForbidden, http.StatusTooManyRequests)
						send(t, right, c.Nodes[i].URL, http.StatusOK)
						unsigned(t, c, right, i)
					}
				})
			}
		}
		work.Wait()
		for _, m := range c.Nodes {
			m.Node.RecordRefusals(time.Now().Unix()/60 + 1)
		}
		count := func() (n uint64, reasons string) {
			for _, r := range c.Nodes[0].Node.ClusterRecords(t) {
				if r.Operation == "refuse requests" && r.Source == nodetest.ClientHost {
					n, reasons = n+r.Count, reasons+" "+r.Reason
				}
			}
			return n, reasons
		}
		const want = 3 * 4 * each * 2
		until(func() bool { n, _ := count(); return n >= want })
		if n, reasons := count(); n != want || !strings.Contains(reasons, "NoSignature ") || !strings.Contains(reasons, "UnknownKey ") || strings.Contains(reasons, "WrongSignature") {
			t.Errorf("%d refused requests are recorded, want %d: %s", n, want, reasons)
		}
	})
}

// send sends a signed request that may have some statuses.
func send(t *testing.T, c *nodetest.Client, url string, statuses ...int) {
	t.Helper()
	q, err := c.Sign(url, http.MethodGet, "/api/galleries", nil)
	if err != nil {
		t.Error(err)
		return
	}
	a, err := c.Send(context.WithoutCancel(t.Context()), url, q)
	if err != nil || !slices.Contains(statuses, a.Status) {
		t.Errorf("the request was answered %d, %v, want %v", a.Status, err, statuses)
	}
}

// unsigned sends a request without a signature.
func unsigned(t *testing.T, c *nodetest.Cluster, client *nodetest.Client, i int) {
	t.Helper()
	q, err := client.Sign(c.Nodes[i].URL, http.MethodGet, "/api/galleries", nil)
	if err != nil {
		t.Error(err)
		return
	}
	q.Headers = slices.DeleteFunc(q.Headers, func(h sigv4.Header) bool { return strings.EqualFold(h.Name, "authorization") })
	a, err := client.Send(context.WithoutCancel(t.Context()), c.Nodes[i].URL, q)
	if err != nil || a.Status != http.StatusForbidden {
		t.Errorf("the request was answered %d, %v", a.Status, err)
	}
}

// Requests that the admin port refuses are counted, each once, by reason. Others are not.
func TestRefusedOperatorsAreCounted(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, c *nodetest.Cluster) {
		waitNewest(t, c)
		ca, own := c.Authority, c.Nodes[1].Node.ID()
		admin := source(t, ca, func() (cert.Pair, error) { return ca.IssueAdmin("root") })
		status := source(t, ca, func() (cert.Pair, error) { return ca.IssueStatus(own) })
		stranger, err := cert.NewCA("other")
		must.Do(t, err)
		foreign := source(t, stranger, func() (cert.Pair, error) { return stranger.IssueAdmin("root") }).AdminClientConfig()
		foreign.VerifyConnection = nil // it accepts any server
		const each = 5
		for _, m := range c.Nodes {
			for range each {
				adminCall(t, m, nil, http.MethodPost, wire.PathNodes)
				adminCall(t, m, status, http.MethodPost, wire.PathTenants)
				adminCall(t, m, nil, http.MethodGet, wire.PathLive)
				adminCall(t, m, admin, http.MethodGet, wire.PathStatus)
				conn, err := m.Dial(t.Context(), m.Config.AdminAddress, foreign)
				if err == nil {
					if _, err = conn.Read(make([]byte, 1)); err == nil {
						t.Error("the port serves an administrator of another cluster")
					}
					_ = conn.Close()
				}
			}
		}
		for _, m := range c.Nodes {
			m.Node.RecordRefusals(time.Now().Unix()/60 + 1)
		}
		count := func() (n uint64, reasons []string) {
			for _, r := range c.Nodes[0].Node.ClusterRecords(t) {
				switch {
				case r.Operation == "refuse requests":
					t.Errorf("the public port is said to have refused %s", r.Reason)
				case r.Operation == "refuse requests at the admin port" && strings.HasPrefix(r.Source, "10.0.0."):
					n, reasons = n+r.Count, append(reasons, r.Reason)
				}
			}
			return n, reasons
		}
		const want = 3 * each * 3
		until(func() bool { n, _ := count(); return n >= want })
		n, reasons := count()
		if n != want || len(reasons) == 3 && slices.ContainsFunc(reasons, func(r string) bool { return r != "NoCertificate 5, WrongCertificate 5, WrongRole 5" }) {
			t.Errorf("%d refused requests are recorded, want %d: %q", n, want, reasons)
		}
	})
}

// Requests for health are counted in the log of their tenant: a minute of a key and node has one record.
func TestHealthIsCounted(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, c *nodetest.Cluster) {
		waitNewest(t, c)
		client, tenant := c.ClientOf("bank")
		const each = 60
		want := map[string]int{}
		minute := time.Now().Unix() / 60
		for _, m := range c.Nodes {
			for range each {
				want[strconv.Itoa(client.Call(t, m.URL, http.MethodGet, "/v1.1/health", nil).Status)]++
			}
		}
		if time.Now().Unix()/60 != minute || want["200"]+want["429"] != len(c.Nodes)*each || want["429"] == 0 {
			t.Fatalf("the answers are %v, and the minute is over: %v", want, time.Now().Unix()/60 != minute)
		}
		for _, m := range c.Nodes {
			m.Node.RecordRefusals(minute + 1)
		}
		a := auditOf(t, promises{c}, client, tenant)
		var got map[string]int
		records := 0
		until(func() bool {
			got, records = map[string]int{}, 0
			for _, r := range acts(a.read(t, 0), "ask for health") {
				records++
				for part := range strings.SplitSeq(r.Reason, ", ") {
					status, n, _ := strings.Cut(part, " ")
					k, _ := strconv.Atoi(n)
					got[status] += k
				}
			}
			return records >= len(c.Nodes)
		})
		if records != len(c.Nodes) || !maps.Equal(got, want) {
			t.Errorf("%d records count %v, want %d and %v", records, got, len(c.Nodes), want)
		}
	})
}

// logLines is a log that several goroutines write.
type logLines struct{ testkit.Buffer }

// with returns the lines that have all of the words.
func (l *logLines) with(words ...string) (list []string) {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			list = append(list, line)
		}
	}
	return list
}

// TestRequestIDReachesAllLogs: the client gets it, the node that was
// asked logs it, and so does each other node that did a part.
func TestRequestIDReachesAllLogs(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		logs := &logLines{}
		c := nodetest.Start(t, nodetest.Options{
			SlotsPerShard: 25, // four shards for a gallery of 100
			Log:           slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		client := c.Client("acme")
		gallery(t, client, c.Nodes[0].URL, "staff", 100)
		helpers := map[string]bool{}
		within(t, 20*time.Second, "leaders on two other nodes help with a search", func() bool {
			client.Call(t, c.Nodes[0].URL, "POST", "/v1.1/subjects", map[string]any{"face": nodetest.Image("person")})
			a := client.Call(t, c.Nodes[0].URL, "POST", "/v1.1/face/search", map[string]any{"probe": nodetest.Image("person")})
			request := a.Header.Get("X-Request-Id")
			if len(request) != 32 {
				t.Fatalf("the answer has the id %q", request)
			}
			within(t, 5*time.Second, "the node that was asked logs the request", func() bool {
				return len(logs.with("node=n1", `msg="request answered"`, "req="+request)) == 1
			})
			for _, n := range []string{"n2", "n3"} {
				if len(logs.with("node="+n, `msg="peer answered"`, "method=shard.search", "req="+request)) > 0 {
					helpers[n] = true
				}
			}
			return len(helpers) == 2
		})
	})
}
