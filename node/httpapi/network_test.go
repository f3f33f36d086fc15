package httpapi

import (
	"net/netip"
	"strings"
	"testing"

	"facet/node/transport/memnet"
	"facet/router"
)

// Connections are counted by the 64 bits of a site. A key's network may be narrower.
func TestKeyIsBoundToWholeAddress(t *testing.T) {
	t.Parallel()
	r := startOn(t, memnet.New(1).Host("::1"), nil, nil)
	for network, status := range map[string]int{"::1/128": 200, "::/127": 200, "::/128": 403, "::2/128": 403, "127.0.0.0/8": 403} {
		k := router.AccessKey{ID: "door", Secret: "secret of door", Tenant: tenantA, KeyTerms: router.KeyTerms{
			Role: router.RoleAdmin, Networks: []netip.Prefix{netip.MustParsePrefix(network)},
		}}
		r.service.keys[k.ID] = k
		got := r.send(signed{as: k.ID, method: "GET", target: "/v1.1/health"})
		if got.status != status || status == 403 && !strings.Contains(got.body, "the address ::1.") {
			t.Errorf("bound to %s: %d %s, want %d", network, got.status, got.body, status)
		}
	}
}
