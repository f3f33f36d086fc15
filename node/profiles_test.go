package node_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"facet/node/cert"
	"facet/node/nodetest"
	"facet/node/wire"
)

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
		if err != nil {
			t.Fatal(err)
		}
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
