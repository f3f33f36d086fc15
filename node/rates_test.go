package node_test

import (
	"net/http"
	"testing"

	"facet/node/httpapi"
	"facet/node/nodetest"
)

func TestRateLimitsItsNode(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		base := cluster.Nodes[0].URL
		gallery(t, client, base, "staff", 10)
		// many sends twenty requests and gives how many came through.
		many := func() (ok int) {
			t.Helper()
			for range 20 {
				switch a := client.Call(t, base, http.MethodGet, "/v1.1/tags", nil); a.Status {
				case http.StatusOK:
					ok++
				case http.StatusTooManyRequests:
					if a.Header.Get("Retry-After") == "" {
						t.Errorf("no Retry-After: %s", a.Body)
					}
				default:
					t.Fatalf("%d %s", a.Status, a.Body)
				}
			}
			return ok
		}
		if ok := many(); ok != 20 {
			t.Errorf("by default %d of 20 came through", ok)
		}
		restart := func(tenant, application httpapi.Rate) {
			t.Helper()
			cluster.Stop(0)
			cluster.Nodes[0].Config.TenantRate, cluster.Nodes[0].Config.ApplicationRate = tenant, application
			cluster.Restart(0)
			cluster.WaitReady()
		}
		slow := 0.001 // none comes back during the test
		restart(httpapi.Rate{PerSecond: slow, Burst: 7}, httpapi.Rate{})
		if ok := many(); ok != 7 {
			t.Errorf("%d came through, want the tenant's 7", ok)
		}
		restart(httpapi.Rate{}, httpapi.Rate{PerSecond: slow, Burst: 3})
		if ok := many(); ok != 3 {
			t.Errorf("%d came through, want the application's 3", ok)
		}
	})
}
