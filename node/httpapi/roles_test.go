package httpapi_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/httpapi"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// keyed makes an access key of the tenant and returns a client with it.
func (n tenant) keyed(t *testing.T, s *service, c *nodetest.Client, terms router.KeyTerms) *nodetest.Client {
	t.Helper()
	k, err := s.Nodes[0].Node.Router().CreateAccessKey(t.Context(), n.key.Tenant, terms)
	must.Do(t, err)
	keyed := c.Keyed(k)
	keyed.APIKey = c.APIKey
	return keyed
}

// moreKeys lets a tenant have enough keys.
func moreKeys(t *testing.T, s *service, n tenant) {
	t.Helper()
	allow(t, s.Nodes[0].Node, n.key.Tenant, metafsm.QuotaValue{Quota: metafsm.QuotaAccessKeys, Most: 100})
}

// galleryID returns the id of a gallery.
func (n tenant) galleryID(t *testing.T, name string) id.Gallery {
	t.Helper()
	var list struct {
		Galleries []struct {
			ID   id.Gallery
			Name string
		}
	}
	n.admin.Call(t, n.base, http.MethodGet, "/api/galleries", nil).Decode(t, &list)
	for _, g := range list.Galleries {
		if g.Name == name {
			return g.ID
		}
	}
	t.Fatalf("no gallery %s in %+v", name, list)
	return id.Gallery{}
}

var inBraces = regexp.MustCompile(`\{[^}]*\}`)

// TestRolesDoTheirPart sends each operation with a key of each role, and compares who may with
// testdata/roles.table. "yes": any answer but 403.
func TestRolesDoTheirPart(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		s := startFaces(t)
		own := s.tenant(t, "roles", 0)
		app := own.gallery(t, "app", 10)
		moreKeys(t, s, own)
		clients := map[string]*nodetest.Client{}
		for _, name := range router.Roles {
			role, err := router.ParseRole(name)
			must.Do(t, err)
			clients[name] = own.keyed(t, s, app, router.KeyTerms{Role: role, Holder: "matrix"})
		}
		var b strings.Builder
		fmt.Fprintf(&b, "# Which role may do what\n\nTestRolesDoTheirPart sends each operation with a key of each role.\n\n| operation | %s |\n|---|%s\n",
			strings.Join(router.Roles, " | "), strings.Repeat("---|", len(router.Roles)))
		for _, op := range httpapi.Operations() {
			fmt.Fprintf(&b, "| %s %s |", op[0], op[1])
			for _, role := range router.Roles {
				path := inBraces.ReplaceAllString(op[1], "x")
				var body any
				if op[0] != http.MethodGet && op[0] != http.MethodDelete {
					body = map[string]any{}
				}
				if a := clients[role].Call(t, own.base, op[0], path, body); a.Status != http.StatusForbidden {
					b.WriteString(" yes")
				}
				b.WriteString(" |")
			}
			b.WriteString("\n")
		}
		name := filepath.Join("testdata", "roles.table")
		if *rewrite {
			must.Do(t, os.WriteFile(name, []byte(b.String()), 0o600))
		}
		want, err := os.ReadFile(name)
		must.Do(t, err)
		if got := b.String(); got != string(want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// TestDoorOnlySearches takes the key of a door through what it is for and what it isn't.
func TestDoorOnlySearches(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		s := startFaces(t)
		own := s.tenant(t, "door", 0)
		staff, guests := own.gallery(t, "staff", 10), own.gallery(t, "guests", 10)
		photo := nodetest.Image("person at the door")
		if a := staff.Call(t, own.base, http.MethodPost, "/v1.1/subjects", map[string]any{"face": photo}); a.Status != http.StatusCreated {
			t.Fatalf("enrol: %d %s", a.Status, a.Body)
		}
		moreKeys(t, s, own)
		only := own.galleryID(t, "staff")
		door := own.keyed(t, s, staff, router.KeyTerms{Role: router.RoleSearchOnly, Holder: "door 3", Galleries: []id.Gallery{only}})
		f := func(what string, c *nodetest.Client, method, path string, body any, status int, part string) {
			t.Helper()
			if a := c.Call(t, own.base, method, path, body); a.Status != status || !strings.Contains(string(a.Body), part) {
				t.Errorf("%s: %d %s, want %d %s", what, a.Status, a.Body, status, part)
			}
		}
		probe := map[string]any{"probe": photo, "limit": 1}
		f("search", door, http.MethodPost, "/v1.1/face/search", probe, 200, `"score":`)
		f("verify", door, http.MethodPost, "/v1.1/face/verify", map[string]any{"probe": photo}, 403, "Forbidden")
		f("list", door, http.MethodGet, "/v1.1/subjects", nil, 403, "Forbidden")
		f("enrol", door, http.MethodPost, "/v1.1/subjects", map[string]any{"face": photo}, 403, "Forbidden")
		other := *door
		other.APIKey = guests.APIKey
		f("ask", door, http.MethodGet, "/v1.1/whoami", nil, 200, fmt.Sprintf(
			`{"role":"search-only","holder":"door 3","galleries":["%s"],"gallery":{"id":"%[1]s","name":"staff","size":10,"count":1}}`, only))
		f("ask elsewhere", &other, http.MethodGet, "/v1.1/whoami", nil, 403, "Forbidden")
		f("search elsewhere", &other, http.MethodPost, "/v1.1/face/search", probe, 403, "Forbidden")

		a := own.admin.Call(t, own.base, http.MethodPost, "/api/applications", map[string]any{
			"name": "door", "galleryId": only.String(), "faceMinimumQualityScore": 0.45, "searchThresholdMin": 9000, "searchLimitMax": 1,
		})
		var bounded struct{ ID, APIKey string }
		if a.Decode(t, &bounded); a.Status != http.StatusOK || !strings.Contains(string(a.Body), `"searchThresholdMin":9000,"searchLimitMax":1`) {
			t.Fatalf("an application with bounds: %d %s", a.Status, a.Body)
		}
		bound := *door
		bound.APIKey = bounded.APIKey
		for _, path := range []string{"/v1.1/face/search", "/v1/face/search"} {
			f("everybody", &bound, http.MethodPost, path, map[string]any{"probe": photo, "threshold": 0}, 400, "threshold must be a whole number from 9000 to 9999.")
			f("more than one", &bound, http.MethodPost, path, map[string]any{"probe": photo, "limit": 2}, 400, "limit must be a whole number from 1 to 1.")
			f("a stranger, as far as the bound", &bound, http.MethodPost, path, map[string]any{"probe": nodetest.Image("a stranger at the door")}, 404, "")
			f("without a threshold", &bound, http.MethodPost, path, map[string]any{"probe": photo}, 200, `"score":`)
		}
		if a := own.admin.Call(t, own.base, http.MethodPatch, "/api/applications/"+bounded.ID, map[string]any{"searchThresholdMin": 0, "searchLimitMax": 0}); a.Status != http.StatusOK {
			t.Fatalf("without bounds: %d %s", a.Status, a.Body)
		}
		time.Sleep(2 * time.Second) // until every node knows it
		f("everybody, without bounds", &bound, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": photo, "threshold": 0, "limit": 50}, 200, `"score":`)

		here := own.keyed(t, s, staff, router.KeyTerms{Role: router.RoleSearchOnly, Holder: "here", Networks: []netip.Prefix{netip.MustParsePrefix(nodetest.ClientHost + "/32")}})
		f("search from its network", here, http.MethodPost, "/v1.1/face/search", probe, 200, `"score":`)
		away := own.keyed(t, s, staff, router.KeyTerms{Role: router.RoleSearchOnly, Holder: "away", Networks: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}})
		f("search from another network", away, http.MethodPost, "/v1.1/face/search", probe, 403, "may not be used from the address "+nodetest.ClientHost)

		ends := time.Now().Add(3 * time.Second).Truncate(time.Millisecond)
		guest := own.keyed(t, s, staff, router.KeyTerms{Role: router.RoleSearchOnly, Holder: "guest", Ends: ends})
		f("ask in time", guest, http.MethodGet, "/v1.1/whoami", nil, 200, fmt.Sprintf(`"ends":"%s"`, ends.UTC().Format("2006-01-02T15:04:05.000-07:00")))
		f("search in time", guest, http.MethodPost, "/v1.1/face/search", probe, 200, `"score":`)
		time.Sleep(time.Until(ends) + 10*time.Millisecond)
		f("search too late", guest, http.MethodPost, "/v1.1/face/search", probe, 403, "The access key ended at ")

		r := s.Nodes[0].Node.Router()
		g := func(what string, terms router.KeyTerms, want string) {
			t.Helper()
			if _, err := r.CreateAccessKey(t.Context(), own.key.Tenant, terms); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", what, err, want)
			}
		}
		g("an administrator of one gallery", router.KeyTerms{Role: router.RoleAdmin, Galleries: []id.Gallery{only}}, "can't be bound to galleries")
		g("a gallery of nobody", router.KeyTerms{Role: router.RoleSearchOnly, Galleries: []id.Gallery{{}}}, "the tenant has no gallery")
		g("a holder with a line", router.KeyTerms{Role: router.RoleSearchOnly, Holder: "a\nb"}, "a holder's name")
	})
}
