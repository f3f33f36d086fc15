package node_test

import (
	"net/http"
	"strings"
	"testing"

	"facet/node/httpapi"
	"facet/node/nodetest"
	"facet/node/sigv4"
)

// The test sends the same requests to a node with the defaults and to one with the
// strict settings.
func TestSwitchesReachThePublicPort(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		statuses := func(change func(m *nodetest.Member)) [5]int {
			c := nodetest.Prepare(t, nodetest.Options{Nodes: 1, Shards: 1})
			change(c.Nodes[0])
			c.Restart(0)
			c.WaitReady()
			base := c.Nodes[0].URL
			client, _ := c.ClientOf("switches")
			send := func(q nodetest.Request, err error) int {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				a, err := client.Send(t.Context(), base, q)
				if err != nil {
					t.Fatal(err)
				}
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
			large, errLarge := client.Sign(base, http.MethodPost, portal, []byte(`{"name":"`+strings.Repeat("x", 2<<20)+`"}`))
			return [5]int{
				send(nodetest.Request{Method: http.MethodGet, Target: "/v1.1/health"}, nil),
				send(other()), send(unsigned, err), send(signed, errSigned), send(large, errLarge),
			}
		}
		got := statuses(func(*nodetest.Member) {})
		if want := [5]int{403, 200, 200, 200, 400}; got != want {
			t.Errorf("defaults: got %v, want %v", got, want)
		}
		got = statuses(func(m *nodetest.Member) {
			m.Config.Health, m.Config.Canonical = httpapi.HealthOpen, sigv4.Strict
			m.Config.MustSign, m.Config.BodyBytes = []string{"x-api-key"}, 1<<20
		})
		if want := [5]int{200, 403, 403, 200, 413}; got != want {
			t.Errorf("strict settings: got %v, want %v", got, want)
		}
	})
}
