package httpapi

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"facet/router"
)

// Connections are counted by the 64 bits of a site. A key's network may be narrower.
func TestKeyIsBoundToWholeAddress(t *testing.T) {
	t.Parallel()
	var addr string
	r := startWith(t, nil, func(_ *Server, ln net.Listener) net.Listener {
		_ = ln.Close()
		ln, err := net.Listen("tcp", "[::1]:0")
		if err != nil {
			t.Skip("the machine has no IPv6: ", err)
		}
		addr = ln.Addr().String()
		return ln
	})
	r.addr = addr
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
