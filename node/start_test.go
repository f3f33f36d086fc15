package node_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/httpapi"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/node/wire"
)

// TestJoinersDoNotHinderFounding has a node that only joins meet the
// first founder while the second one is not there yet.
func TestJoinersDoNotHinderFounding(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		c := nodetest.Prepare(t, nodetest.Options{Nodes: 3, Founders: 2, Shards: 1})
		joins := c.Nodes[2]
		joins.Config.Expect = 0
		c.Restart(0)
		c.Restart(2)
		within(t, 20*time.Second, "the nodes meet", func() bool { return c.Nodes[0].Node.Seen() > 1 && joins.Node.Seen() > 1 })
		c.Restart(1)
		c.WaitReady()
	})
}

// Five of seven founders vote in meta, and the others receive its log.
func TestSevenNodesFoundTogether(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 7, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		eventually(t, c.Nodes[0].Node, "five voters of meta among seven nodes", func(s wire.Status) bool {
			return len(s.Nodes) == 7 && metaVoters(s) == 5
		})
	})
}

func TestReadyWaitsForTemplates(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 4}, func(t *testing.T, cluster *nodetest.Cluster) {
		c, m := cluster.Client("bank"), cluster.Nodes[0]
		gallery(t, c, m.URL, "staff", 1000)
		for i := range 120 {
			enrol(t, c, m.URL, fmt.Sprint(i))
		}
		for range 3 {
			cluster.Stop(0)
			cluster.Restart(0)
			opened := false
			for waiting := true; waiting; time.Sleep(20 * time.Millisecond) {
				select {
				case <-m.Node.Ready():
					waiting = false
				default:
				}
				if status, text := adminGet(t, m, wire.PathReady); status == http.StatusOK {
					opened = true
				} else if opened {
					t.Errorf("after it was ready it says %d %s", status, text)
				}
			}
			held := 0
			for number := range 4 {
				s, here := m.Node.ShardHere(id.Shard(number + 1))
				if !here {
					t.Fatalf("shard %d is not open on a node that is ready", number+1)
				}
				held += s.Stats().Active
				if cold := s.Cold(); len(cold) > 0 {
					t.Errorf("shard %d of a node that is ready has closed templates: %v", number+1, cold)
				}
			}
			if held != 120 {
				t.Errorf("a node that is ready has %d events of 120", held)
			}
		}
	})
}

func TestStatusShowsNodeThatNobodyReaches(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		for i := range cluster.Nodes {
			cluster.Stop(i)
		}
		m := cluster.Nodes[2]
		m.Config.PeerAdvertise = "nowhere:7421"
		cluster.Restart(2)
		s := m.Node.Status(t.Context())
		text := strings.Join(s.Warnings, "\n")
		for _, want := range []string{"other nodes can't find this one at nowhere:7421", "has not read the records of its cluster"} {
			if !s.Unread || !strings.Contains(text, want) {
				t.Errorf("unread %v, warnings\n%s\nwant %q", s.Unread, text, want)
			}
		}
	})
}

func TestStatusShowsPartsAndRounds(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		n := cluster.Nodes[0].Node
		eventually(t, n, "a round of each part", func(s wire.Status) bool {
			rounds := map[string]bool{}
			for _, p := range s.Nodes[0].Parts {
				rounds[p.Name] = p.Running && !p.Last.IsZero() && p.Error == ""
			}
			for _, name := range []string{"access", "audit", "audit logs", "checks", "claims", "codes", "controller", "expiry", "identity", "keys", "limits", "links", "merges", "purges", "rollbacks", "room", "rounds of erasure", "sizes", "uses of keys", "warmer"} {
				if !rounds[name] {
					return false
				}
			}
			return len(rounds) == 20
		})
		var loops []string
		for _, p := range n.Status(t.Context()).Nodes[0].Parts {
			loops = append(loops, p.Name)
		}
		names := node.PartNames()
		if of := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(loops, name) }); !slices.Equal(of, loops) {
			t.Errorf("the parts with a loop are %q, the loops %q", of, loops)
		}
		if slices.Sort(names); len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("two parts have one name: %q", names)
		}
	})
}

// The test sends the same requests to a node with the defaults and to one with the
// strict settings.
func TestSwitchesReachThePublicPort(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		statuses := func(change func(m *nodetest.Member)) [6]int {
			c := nodetest.Prepare(t, nodetest.Options{Nodes: 1, Shards: 1})
			change(c.Nodes[0])
			c.Restart(0)
			c.WaitReady()
			base := c.Nodes[0].URL
			client, _ := c.ClientOf("switches")
			send := func(q nodetest.Request, err error) int {
				t.Helper()
				must.Do(t, err)
				a, err := client.Send(t.Context(), base, q)
				must.Do(t, err)
				return a.Status
			}
			const portal = "/api/galleries"
			withoutKey, err := client.Sign(base, http.MethodGet, portal, nil)
			unsigned := withoutKey
			unsigned.Headers = append([]sigv4.Header{{Name: "x-api-key", Value: "k"}}, withoutKey.Headers...)
			other := func() (nodetest.Request, error) { // the host is signed without its port
				name, _, _ := strings.Cut(strings.TrimPrefix(base, "https://"), ":")
				return client.Sign("https://"+name, http.MethodGet, portal, nil)
			}
			signed, errSigned := client.Sign(base, http.MethodGet, portal, nil, sigv4.Header{Name: "x-api-key", Value: "k"})
			many := func() (status int) {
				for range 9 {
					status = send(client.Sign(base, http.MethodGet, portal, nil))
				}
				return status
			}
			large, errLarge := client.Sign(base, http.MethodPost, portal, []byte(`{"name":"`+strings.Repeat("x", 2<<20)+`"}`))
			return [6]int{
				send(nodetest.Request{Method: http.MethodGet, Target: "/v1.1/health"}, nil),
				send(other()), send(unsigned, err), send(signed, errSigned), send(large, errLarge), many(),
			}
		}
		got := statuses(func(*nodetest.Member) {})
		if want := [6]int{403, 200, 200, 200, 400, 200}; got != want {
			t.Errorf("defaults: got %v, want %v", got, want)
		}
		got = statuses(func(m *nodetest.Member) {
			m.Config.Health, m.Config.Canonical = httpapi.HealthOpen, sigv4.Strict
			m.Config.MustSign, m.Config.BodyBytes = []string{"x-api-key"}, 1<<20
			m.Config.TenantRate = httpapi.Rate{PerSecond: .001, Burst: 7} // none comes back during the test
		})
		if want := [6]int{200, 403, 400, 200, 413, 429}; got != want {
			t.Errorf("strict settings: got %v, want %v", got, want)
		}
	})
}

func TestLoneNodeWarnsOnce(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		var log logLines
		cluster := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 16, Log: slog.New(slog.NewTextHandler(&log, nil))})
		n := cluster.Nodes[0].Node
		eventually(t, n, "one warning", func(s wire.Status) bool { return len(s.Warnings) == 1 && warned(s, "one node") })
		if lines := log.with("facet cluster renew"); n.WarnOfExpiry(t.Context(), time.Now()) || len(lines) > 0 {
			t.Errorf("a certificate of a year is warned of: %q", lines)
		}
		n.WarnOfExpiry(t.Context(), time.Now().AddDate(0, 0, 364))
		if lines := log.with("facet cluster renew", "level=ERROR"); len(lines) != 2 {
			t.Errorf("the last day of two certificates is warned of in %q", lines)
		}
	})
}
