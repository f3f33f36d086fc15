package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"facet/cmd/facet/dev"
	"facet/internal/must"
	"facet/internal/testkit"
	"facet/node/sigv4"
	"facet/node/wire"
)

// client is an ordinary client of the interface, with an access key and, once it
// has a gallery, an API key.
type client struct {
	testkit.Client
	info dev.Info
}

// galleries counts the galleries of the tests.
var galleries atomic.Int64

// client returns a client with a new gallery named after the test.
func (c *cluster) client(t *testing.T, size int) *client {
	t.Helper()
	k := c.keyless(t)
	k.gallery(t, map[string]any{"name": fmt.Sprint(t.Name(), " ", galleries.Add(1)), "description": "e2e", "faceMinimumQualityScore": 0.45, "size": size})
	return k
}

// gallery makes a gallery, which k uses from now on.
func (k *client) gallery(t *testing.T, body map[string]any) {
	t.Helper()
	var made struct {
		APIKey string `json:"apiKey"`
	}
	k.post(t, 0, "/api/galleries", body).Want(t, 200, &made)
	k.APIKey = made.APIKey
}

// keyless returns a client without a gallery.
func (c *cluster) keyless(t *testing.T) *client {
	t.Helper()
	return connect(t, c.info)
}

// connect returns a client that signs with the keys in info.
func connect(t *testing.T, info dev.Info) *client {
	t.Helper()
	k, err := testkit.New(info.CAFile, testkit.Signer(info.AccessKey, info.SecretKey), nil)
	must.Do(t, err)
	k.HTTP.Timeout = 35 * time.Second
	return &client{*k, info}
}

// with returns a client with another access key.
func (k *client) with(p wire.KeyPair) *client {
	return &client{*k.Keyed(p.AccessKey, p.SecretKey), k.info}
}

// host is the host that requests sign. It has no port, so that any node takes them.
const host = "https://127.0.0.1"

// sign returns a signed request. key is an Idempotency-Key, "" for none.
func (k *client) sign(method, target, key string, body any) (testkit.Request, error) {
	var headers []sigv4.Header
	if key != "" {
		headers = []sigv4.Header{{Name: "idempotency-key", Value: key}}
	}
	return k.Sign(host, method, target, body, headers...)
}

// send sends r to a node.
func (k *client) send(node int, r testkit.Request) (testkit.Answer, error) {
	return k.SendAs(context.Background(), k.info.BaseURLs[node], host, r)
}

// call signs a request and sends it.
func (k *client) call(t *testing.T, node int, method, target string, body any) testkit.Answer {
	t.Helper()
	return k.Call(t, k.info.BaseURLs[node], method, target, body)
}

func (k *client) post(t *testing.T, node int, target string, body any) testkit.Answer {
	t.Helper()
	return k.call(t, node, http.MethodPost, target, body)
}

func (k *client) get(t *testing.T, node int, target string) testkit.Answer {
	t.Helper()
	return k.call(t, node, http.MethodGet, target, nil)
}

// registered is the answer to a registration.
type registered struct {
	ID         string         `json:"id"`
	EventID    string         `json:"eventId"`
	Attributes map[string]any `json:"attributes"`
}

func (k *client) register(t *testing.T, node int, name string) registered {
	t.Helper()
	var r registered
	k.post(t, node, "/v1.1/subjects", map[string]any{"face": encoded(t, name)}).Want(t, 201, &r)
	return r
}

// candidates is the answer to a search.
type candidates struct {
	Candidates []struct {
		ID     string
		Score  int
		Events []struct {
			ID    string
			Score int
		}
	}
}

// listing is the answer to a list request.
type listing struct {
	Subjects []struct{ ID, EventID, Status, LastUpdated string }
	Total    int
}

// active lists all active events of the gallery, page by page.
func (k *client) active(t *testing.T, node int) map[string]int {
	t.Helper()
	found := map[string]int{}
	for start := 0; ; {
		var l listing
		a := k.get(t, node, fmt.Sprintf("/v1.1/subjects?length=100&start=%d", start))
		if a.Status == 404 {
			return found
		}
		a.Want(t, 200, &l)
		for _, s := range l.Subjects {
			if s.Status == "A" {
				found[s.ID]++
			}
		}
		if start += len(l.Subjects); start >= l.Total {
			return found
		}
	}
}
