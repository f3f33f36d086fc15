package node_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/must"
	"facet/node/cert"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/router"
	"facet/router/routing"
)

// Two addresses open silent connections to the admin port, more than they may have. A
// third address still gets its answer, and so does another client at the first one. Each silent connection
// ends within the time of a handshake.
func TestAdminConnectionsAreBounded(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		address := c.Nodes[0].Config.AdminAddress
		const opened, perAddress = 100, 64
		var silent []net.Conn
		flood := func(from string) {
			t.Helper()
			var held atomic.Int64
			var work sync.WaitGroup
			for range opened {
				conn, err := c.Network.Host(from).Dial(t.Context(), address)
				must.Do(t, err)
				t.Cleanup(func() { _ = conn.Close() })
				silent = append(silent, conn)
				must.Do(t, conn.SetReadDeadline(time.Now().Add(2*time.Second)))
				work.Go(func() {
					if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
						held.Add(1)
					}
				})
			}
			work.Wait()
			if held.Load() != perAddress {
				t.Errorf("%s holds %d connections of %d, want %d", from, held.Load(), opened, perAddress)
			}
		}
		for _, from := range []string{"10.0.9.2", "10.0.9.3"} {
			flood(from)
		}
		if status, text := adminGet(t, c.Nodes[0], wire.PathLive); status != http.StatusOK {
			t.Errorf("liveness during the flood: %d %s", status, text)
		}
		beside := *c.Nodes[0]
		beside.Config.Network = c.Network.Host("10.0.9.2")
		if status, text := adminGet(t, &beside, wire.PathReady); status != http.StatusOK {
			t.Errorf("readiness for the address that floods: %d %s", status, text)
		}
		time.Sleep(5 * time.Second)
		for _, conn := range silent {
			must.Do(t, conn.SetReadDeadline(time.Now().Add(time.Second)))
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("a silent connection is still open")
			}
		}
	})
}

func TestAccessKeysKeepPromises(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		p := keyPromises{nodetest.Start(t, nodetest.Options{})}
		nodetest.Step(t, "two keys of a role are live at most, however many ask at once", p.twoAreLive)
		nodetest.Step(t, "a revoked key is refused by every node and stays listed for a while", p.revokedIsRefused)
		nodetest.Step(t, "keys belong to their tenant", p.keysAreTheTenants)
		nodetest.Step(t, "a successor has the terms of the key before", p.successorHasTerms)
	})
}

type keyPromises struct{ *nodetest.Cluster }

func (p keyPromises) router(i int) *routing.Router { return p.Nodes[i%len(p.Nodes)].Node.Router() }

// tenant makes a tenant with its first key.
func (p keyPromises) tenant(t *testing.T, name string) router.AccessKey {
	t.Helper()
	key, err := p.CreateTenant(name)
	must.Do(t, err)
	return key
}

// live returns the ids of a tenant's keys of a role that are in use.
func (p keyPromises) live(t *testing.T, key router.AccessKey) (ids []string) {
	t.Helper()
	list, err := p.router(1).AccessKeys(t.Context(), key.Tenant)
	must.Do(t, err)
	for _, k := range list {
		if k.Role == key.Role && !k.Revoked {
			ids = append(ids, k.ID)
		}
		if age := time.Since(k.Created); age < 0 || age > time.Hour {
			t.Errorf("created %v", k.Created)
		}
	}
	return ids
}

func (p keyPromises) twoAreLive(t *testing.T) {
	first := p.tenant(t, "two")
	var mu sync.Mutex
	var made []router.AccessKey
	var work sync.WaitGroup
	for i := range 12 {
		work.Go(func() {
			key, old, err := p.router(i).RotateAccessKey(t.Context(), first.Tenant, router.KeyTerms{Role: router.RoleAdmin})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && old == first.ID:
				made = append(made, key)
			case router.KindOf(err) != router.Duplicate || !strings.Contains(err.Error(), first.ID) || !strings.Contains(err.Error(), "revoke"):
				t.Errorf("got %q, %v", old, err)
			}
		})
	}
	work.Wait()
	if len(made) != 1 || made[0].Role != router.RoleAdmin || made[0].Tenant != first.Tenant {
		t.Fatalf("%d keys were made: %+v", len(made), made)
	}
	if got := p.live(t, first); len(got) != 2 {
		t.Errorf("live: %v", got)
	}
	for _, key := range []router.AccessKey{first, made[0]} {
		if got, err := p.router(2).AccessKey(t.Context(), key.ID); err != nil || !reflect.DeepEqual(got, key) {
			t.Errorf("got %+v, %v, want %+v", got, err, key)
		}
	}
	if _, err := p.router(0).CreateAccessKey(t.Context(), first.Tenant, router.KeyTerms{Role: router.RoleAdmin}); router.KindOf(err) != router.Duplicate {
		t.Errorf("create a third: %v", err)
	}
	if _, _, err := p.router(0).RotateAccessKey(t.Context(), first.Tenant, router.KeyTerms{Role: router.RoleReadOnly}); router.KindOf(err) != router.NotFound {
		t.Errorf("rotate where there is none: %v", err)
	}
	reader, err := p.router(0).CreateAccessKey(t.Context(), first.Tenant, router.KeyTerms{Role: router.RoleReadOnly})
	if err != nil || len(p.live(t, reader)) != 1 {
		t.Errorf("another role has its own two: %v", err)
	}
}

func (p keyPromises) revokedIsRefused(t *testing.T) {
	key := p.tenant(t, "revoked")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const rotations = 40 // more than stay listed
	for i := range rotations {
		next, old, err := p.router(i).RotateAccessKey(ctx, key.Tenant, router.KeyTerms{Role: router.RoleAdmin})
		if err != nil || old != key.ID {
			t.Fatalf("rotation %d: %q, %v, want %q", i, old, err, key.ID)
		}
		for range 2 { // the second finds it revoked
			if err := p.router(i+1).RevokeAccessKey(ctx, key.Tenant, old); err != nil {
				t.Fatalf("revocation %d: %v", i, err)
			}
		}
		key = next
		time.Sleep(time.Second) // the list is in the order of seconds
		if i%20 != 0 {
			continue
		}
		time.Sleep(2 * time.Second)
		for n := range p.Nodes {
			if _, err := p.router(n).AccessKey(ctx, old); router.KindOf(err) != router.NotFound {
				t.Errorf("node %d, two seconds later: %v", n+1, err)
			}
			if _, err := p.router(n).AccessKey(ctx, next.ID); err != nil {
				t.Errorf("node %d refuses the new key: %v", n+1, err)
			}
		}
	}
	list, err := p.router(0).AccessKeys(ctx, key.Tenant)
	if err != nil || len(list) != 33 || list[32].ID != key.ID || list[32].Revoked || !list[0].Revoked {
		t.Errorf("%d keys are listed after %d rotations (%v), want 32 revoked ones and the live one", len(list), rotations, err)
	}
}

func (p keyPromises) keysAreTheTenants(t *testing.T) {
	one, other := p.tenant(t, "one"), p.tenant(t, "other")
	if err := p.router(0).RevokeAccessKey(t.Context(), other.Tenant, one.ID); router.KindOf(err) != router.NotFound {
		t.Errorf("another tenant's key: %v", err)
	}
	if got := p.live(t, one); len(got) != 1 || got[0] != one.ID {
		t.Errorf("live: %v", got)
	}
	if _, err := p.router(0).TenantNamed(t.Context(), "nobody"); router.KindOf(err) != router.NotFound {
		t.Errorf("an unknown tenant: %v", err)
	}
	if got, err := p.router(2).TenantNamed(t.Context(), "other"); err != nil || got != other.Tenant {
		t.Errorf("got %v, %v, want %v", got, err, other.Tenant)
	}
}

func (p keyPromises) successorHasTerms(t *testing.T) {
	tenant := p.tenant(t, "doors").Tenant
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	terms := func(holder string) router.KeyTerms {
		return router.KeyTerms{
			Role: router.RoleSearchOnly, Holder: holder, Networks: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/16")}, Ends: ends,
		}
	}
	create := func(holder string) router.AccessKey {
		t.Helper()
		return newKey(t, p.Cluster, tenant, terms(holder))
	}
	one, two := create("door 1"), create("door 2")
	if got := one.Networks[0].String(); got != "10.1.0.0/16" {
		t.Errorf("network %s", got)
	}
	next, old, err := p.router(1).RotateAccessKey(t.Context(), tenant, router.KeyTerms{Role: router.RoleSearchOnly, Holder: "door 1"})
	if err != nil || old != one.ID || !reflect.DeepEqual(next.KeyTerms, one.KeyTerms) {
		t.Errorf("got %+v after %s, %v, want %+v", next, old, err, one)
	}
	for i, key := range []router.AccessKey{one, two, next} {
		if got, err := p.router(i).AccessKey(t.Context(), key.ID); err != nil || !reflect.DeepEqual(got, key) {
			t.Errorf("got %+v, %v, want %+v", got, err, key)
		}
	}
	if _, err := p.router(2).CreateAccessKey(t.Context(), tenant, terms("door 1")); router.KindOf(err) != router.Duplicate || !strings.Contains(err.Error(), "for door 1") {
		t.Errorf("a third key of a door: %v", err)
	}
	later := router.KeyTerms{Role: router.RoleSearchOnly, Holder: "door 2", Ends: ends.Add(time.Hour)}
	if next, _, err := p.router(2).RotateAccessKey(t.Context(), tenant, later); err != nil || !next.Ends.Equal(later.Ends) || len(next.Networks) != 1 {
		t.Errorf("got %+v, %v, want another end", next, err)
	}

	used := time.Now().UTC().Truncate(time.Millisecond)
	must.Do(t, p.router(1).NoteKeyUses(t.Context(), map[string]time.Time{one.ID: used, "unknown": used}))
	list, err := p.router(2).AccessKeys(t.Context(), tenant)
	must.Do(t, err)
	for _, k := range list {
		if want := k.ID == one.ID; k.Used.Equal(used) != want || k.Used.IsZero() == want {
			t.Errorf("%s of %s: last use %v", k.ID, k.Holder, k.Used)
		}
	}
}

func TestProfilesAreBounded(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		m := c.Nodes[0]
		admin := source(t, c.Authority, func() (cert.Pair, error) { return c.Authority.IssueAdmin("root") })
		f := func(path string, status int, want string) {
			t.Helper()
			if got, body := adminCall(t, m, admin, "GET", wire.PathProfiles+path); got != status || !strings.Contains(body, want) {
				t.Errorf("%s: got %d %.300s, want %d with %q", path, got, body, status, want)
			}
		}
		f("profile?seconds=61", http.StatusBadRequest, "1 to 60")
		f("trace?seconds=1e9", http.StatusBadRequest, "1 to 60")
		f("heap?seconds=-1", http.StatusBadRequest, "1 to 60")
		f("goroutine?debug=2", http.StatusBadRequest, "arguments of calls")
		f("goroutine?debug=1", http.StatusOK, "goroutine profile: total ")
		f("cmdline", http.StatusNotFound, "there is no profile")

		ctx, cancel := context.WithCancel(t.Context())
		client := m.HTTP(admin.AdminClientConfig())
		long, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.Config.AdminAddress+wire.PathProfiles+"mutex?seconds=60", nil)
		must.Do(t, err)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil { // one of those that takes asks for may have the place at first
				if a, err := client.Do(long); err == nil {
					a.Body.Close()
				}
			}
		}()
		takes := func(status int) {
			t.Helper()
			within(t, 10*time.Second, http.StatusText(status), func() bool {
				got, _ := adminCall(t, m, admin, "GET", wire.PathProfiles+"heap")
				return got == status
			})
		}
		takes(http.StatusConflict)
		cancel() // a caller that goes frees the place
		<-ended
		takes(http.StatusOK)
	})
}

func TestLogAndSettingsAreForAdministrators(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		c := nodetest.Prepare(t, nodetest.Options{Nodes: 1, Shards: 1})
		m := c.Nodes[0]
		m.Config.RecentLog = func() []byte { return []byte("a line\n") }
		m.Config.Settings = func() (map[string]any, error) { return map[string]any{"zone": "here"}, nil }
		c.Restart(0)
		admin := source(t, c.Authority, func() (cert.Pair, error) { return c.Authority.IssueAdmin("root") })
		status := source(t, c.Authority, func() (cert.Pair, error) { return c.Authority.IssueStatus(m.Node.ID()) })
		for path, want := range map[string]string{wire.PathLog: "a line\n", wire.PathSettings: `{"zone":"here"}` + "\n"} {
			if code, body := adminCall(t, m, admin, "GET", path); code != http.StatusOK || body != want {
				t.Errorf("%s: %d %q, want %q", path, code, body, want)
			}
			for _, other := range []*cert.Source{status, nil} {
				if code, body := adminCall(t, m, other, "GET", path); code != http.StatusForbidden {
					t.Errorf("%s without the administrator's certificate: %d %s", path, code, body)
				}
			}
		}
	})
}

func TestPublicPortHasNoProfiles(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		client := c.Client("acme")
		for _, path := range []string{"goroutine?debug=1", "heap", "profile?seconds=1", "", "../log", "../settings"} {
			if a := client.Call(t, c.Nodes[0].URL, "GET", wire.PathProfiles+path, nil); a.Status < 400 || strings.Contains(string(a.Body), "goroutine") {
				t.Errorf("%s: %d %s", path, a.Status, a.Body)
			}
		}
	})
}
