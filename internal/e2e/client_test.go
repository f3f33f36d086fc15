package e2e

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"facet/node/sigv4"
)

// client is an ordinary client of the interface, with an access key and, once it
// has a gallery, an API key.
type client struct {
	info   info
	http   *http.Client
	signer sigv4.Signer
	apiKey string
}

// answer is a status and a body.
type answer struct {
	status int
	body   []byte
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
	k.post(t, 0, "/api/galleries", body).want(t, 200, &made)
	k.apiKey = made.APIKey
}

// keyless returns a client without a gallery.
func (c *cluster) keyless(t *testing.T) *client {
	t.Helper()
	ca, err := os.ReadFile(c.info.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &client{
		info: c.info,
		http: &http.Client{
			Timeout:   35 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 16},
		},
		signer: sigv4.Signer{
			Region: c.info.Region, Service: c.info.Service, AccessKey: c.info.AccessKey, SecretKey: c.info.SecretKey,
		},
	}
}

// signed is a request that can be sent any number of times, to any node, with the
// same bytes. The host that it signs has no port.
type signed struct {
	method, target string
	header         http.Header
	body           []byte
}

const host = "127.0.0.1"

// sign returns a signed request. key is an Idempotency-Key, "" for none.
func (k *client) sign(method, target, key string, body any) (signed, error) {
	r := signed{method: method, target: target, header: http.Header{}}
	if body != nil {
		var err error
		if r.body, err = json.Marshal(body); err != nil {
			return r, err
		}
		r.header.Set("Content-Type", "application/json")
	}
	if k.apiKey != "" {
		r.header.Set("X-Api-Key", k.apiKey)
	}
	if key != "" {
		r.header.Set("Idempotency-Key", key)
	}
	headers := []sigv4.Header{{Name: "host", Value: host}}
	for name := range r.header {
		headers = append(headers, sigv4.Header{Name: name, Value: r.header.Get(name)})
	}
	added, err := k.signer.Sign(sigv4.Request{Method: method, Target: target, Headers: headers}, sha256.Sum256(r.body), time.Now())
	for _, h := range added {
		r.header.Set(h.Name, h.Value)
	}
	return r, err
}

// send sends r to a node.
func (k *client) send(node int, r signed) (answer, error) {
	return k.sendBody(node, r, bytes.NewReader(r.body))
}

func (k *client) sendBody(node int, r signed, body io.Reader) (answer, error) {
	q, err := http.NewRequest(r.method, k.info.BaseURLs[node]+r.target, body)
	if err != nil {
		return answer{}, err
	}
	q.Host = host
	q.Header = r.header.Clone()
	got, err := k.http.Do(q)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	read, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, read}, err
}

// call signs a request and sends it.
func (k *client) call(t *testing.T, node int, method, target string, body any) answer {
	t.Helper()
	r, err := k.sign(method, target, "", body)
	if err != nil {
		t.Fatal(err)
	}
	a, err := k.send(node, r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return a
}

func (k *client) post(t *testing.T, node int, target string, body any) answer {
	t.Helper()
	return k.call(t, node, http.MethodPost, target, body)
}

func (k *client) get(t *testing.T, node int, target string) answer {
	t.Helper()
	return k.call(t, node, http.MethodGet, target, nil)
}

// want checks the status and decodes the body into v, unless v is nil.
func (a answer) want(t *testing.T, status int, v any) {
	t.Helper()
	if a.status != status {
		t.Fatalf("got %d %.500s, want %d", a.status, a.body, status)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("read %.500s: %v", a.body, err)
	}
}

// refused checks that the answer is an error of the interface's section 7.
func (a answer) refused(t *testing.T, errorType string, errorCode int) {
	t.Helper()
	var e struct {
		Message   string
		ErrorCode int
		ErrorType string
	}
	if err := json.Unmarshal(a.body, &e); err != nil || a.status != 400 || e.ErrorType != errorType || e.ErrorCode != errorCode || e.Message == "" {
		t.Errorf("got %d %.300s (%v), want 400 %s %d and a message", a.status, a.body, err, errorType, errorCode)
	}
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
	k.post(t, node, "/v1.1/subjects", map[string]any{"face": encoded(t, name)}).want(t, 201, &r)
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
		if a.status == 404 {
			return found
		}
		a.want(t, 200, &l)
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
