package node_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/node/cert"
	"facet/node/nodetest"
	"facet/node/wire"
)

// Requests that the admin port refuses are counted, each once, by reason. Others are not.
func TestRefusedOperatorsAreCounted(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 2}, func(t *testing.T, c *nodetest.Cluster) {
		waitNewest(t, c)
		ca, own := c.Authority, c.Nodes[1].Node.ID()
		admin := source(t, ca, func() (cert.Pair, error) { return ca.IssueAdmin("root") })
		status := source(t, ca, func() (cert.Pair, error) { return ca.IssueStatus(own) })
		stranger, err := cert.NewCA("other")
		if err != nil {
			t.Fatal(err)
		}
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
