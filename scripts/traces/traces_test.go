package traces_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"facet/engine/enginetest"
	"facet/internal/must"
	"facet/internal/trace"
	"facet/node/nodetest"
	"facet/node/sigv4"
)

// spanTimeout is how long a span may take from its end to the collector: five seconds in
// the node's batch, and some more.
const spanTimeout = 20 * time.Second

// collector is the receiver of a collector.
type collector struct {
	url   string
	spans consumertest.TracesSink
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	address := free.Addr().String()
	free.Close()
	c := &collector{url: "http://" + address}
	factory := otlpreceiver.NewFactory()
	cfg, ok := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	if !ok {
		t.Fatal("the receiver has another configuration")
	}
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr = confignet.AddrConfig{Endpoint: address, Transport: confignet.TransportTypeTCP}
	cfg.Protocols = otlpreceiver.Protocols{HTTP: configoptional.Some(otlpreceiver.HTTPConfig{ServerConfig: server, TracesURLPath: "/v1/traces"})}
	r, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, &c.spans)
	must.Do(t, err)
	must.Do(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		if err := r.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// span is a span as the collector has it.
type span struct {
	ptrace.Span
	node string
}

// of returns the spans of a trace.
func (c *collector) of(trace string) (list []span) {
	for _, batch := range c.spans.AllTraces() {
		for _, r := range batch.ResourceSpans().All() {
			node, _ := r.Resource().Attributes().Get("service.instance.id")
			for _, scope := range r.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					if s.TraceID().String() == trace {
						list = append(list, span{s, node.Str()})
					}
				}
			}
		}
	}
	return list
}

// wait waits until a trace has a span for each of these names and the parent of each span,
// and returns it. Each node sends its own spans, when its batch is due.
func (c *collector) wait(t *testing.T, trace string, names ...string) (list []span) {
	t.Helper()
	var missing []string
	for end := time.Now().Add(spanTimeout); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		list = c.of(trace)
		missing = slices.Clone(names)
		for _, s := range list {
			if i := slices.Index(missing, s.Name()); i >= 0 {
				missing = slices.Delete(missing, i, i+1)
			}
		}
		missing = append(missing, orphans(list)...)
		if len(missing) == 0 {
			return list
		}
	}
	t.Fatalf("trace %s has %d spans, without %q", trace, len(list), missing)
	return nil
}

// orphans names the spans whose parent is not in their trace.
func orphans(list []span) (names []string) {
	known := map[string]bool{callersSpan: true}
	for _, s := range list {
		known[s.SpanID().String()] = true
	}
	for _, s := range list {
		if !known[s.ParentSpanID().String()] {
			names = append(names, fmt.Sprintf("the parent of %s on node %s", s.Name(), s.node))
		}
	}
	return names
}

// callersSpan is the id of the span that a caller names as its own.
const callersSpan = "b7ad6b7169203331"

// parent returns a caller's traceparent. A client's order to sample, 01, does not count.
func parent(n int) (trace string, header sigv4.Header) {
	trace = fmt.Sprintf("%032x", 0xabcdef00+n)
	return trace, sigv4.Header{Name: "traceparent", Value: "00-" + trace + "-" + callersSpan + "-01"}
}

// office is a cluster with traces, and a client of a gallery in it.
type office struct {
	*nodetest.Cluster
	*nodetest.Client
}

func start(t *testing.T, c *collector, ratio float64) *office {
	t.Helper()
	e := enginetest.Shared(t)
	o := office{Cluster: nodetest.Prepare(t, nodetest.Options{Extractor: e, Table: e.Table()})}
	for i := range o.Nodes {
		o.Nodes[i].Config.TracesTo, o.Nodes[i].Config.TracesRatio = c.url, ratio
		o.Restart(i)
	}
	o.WaitReady()
	o.Client = o.Cluster.Client("northwind")
	var gallery struct {
		APIKey string `json:"apiKey"`
	}
	a := o.Call(t, o.Nodes[0].URL, http.MethodPost, "/api/galleries", map[string]any{
		"name": "secretstaff", "description": "", "faceMinimumQualityScore": .45, "size": 200_000,
	})
	if err := json.Unmarshal(a.Body, &gallery); err != nil || gallery.APIKey == "" {
		t.Fatalf("create a gallery: %d %s", a.Status, a.Body)
	}
	o.APIKey = gallery.APIKey
	return &o
}

func photo(t *testing.T, name string) string {
	return base64.StdEncoding.EncodeToString(enginetest.Photo(t, name))
}

// A search and an enrolment are each one trace through all nodes that worked on it, with a span
// for each stage. No span has a name, a key or an external id.
func TestTraceCoversAllNodes(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	o := start(t, c, 1)
	var enrolments []string
	for n := range 6 { // so many lie on several shards, and need not lie on this node
		id, header := parent(n)
		a := o.Call(t, o.Nodes[0].URL, http.MethodPost, "/v1.1/subjects",
			map[string]any{"face": photo(t, "face_recognition/obama.jpg"), "externalId": fmt.Sprint("person-", n)}, header)
		if a.Status != http.StatusCreated {
			t.Fatalf("enrol: %d %s", a.Status, a.Body)
		}
		enrolments = append(enrolments, id)
	}
	search, header := parent(100)
	if a := o.Call(t, o.Nodes[1].URL, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": photo(t, "face_recognition/obama2.jpg")}, header); a.Status != http.StatusOK {
		t.Fatalf("search: %d %s", a.Status, a.Body)
	}
	list := c.wait(t, search, "POST /v1.1/face/search", trace.Body, trace.Key, trace.Queue, trace.Models, trace.Decode, trace.Find,
		trace.Call, trace.Scan, trace.Scan, trace.Scan, trace.Scan) // a scan of each shard
	for _, id := range enrolments {
		list = append(list, c.wait(t, id, "POST /v1.1/subjects", trace.Models, trace.Commit)...)
	}
	nodes := map[string]bool{}
	for _, s := range list {
		nodes[s.node] = true
	}
	if len(nodes) != len(o.Nodes) {
		t.Errorf("the spans are of %d nodes, want %d", len(nodes), len(o.Nodes))
	}
	nothingPersonal(t, c, o.APIKey, "northwind", "secretstaff", "person-")
}

func nothingPersonal(t *testing.T, c *collector, secrets ...string) {
	t.Helper()
	var m ptrace.JSONMarshaler
	for _, batch := range c.spans.AllTraces() {
		text, err := m.MarshalTraces(batch)
		must.Do(t, err)
		for _, s := range secrets {
			if strings.Contains(string(text), s) {
				t.Errorf("the spans tell %q", s)
			}
		}
	}
}

// With a share of 0 a client that orders a sample gets none, and a refused request has no
// trace at all.
func TestClientsOrderNoTrace(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	o := start(t, c, 0)
	unsampled, header := parent(1)
	o.Call(t, o.Nodes[0].URL, http.MethodGet, "/v1.1/subjects", nil, header)
	all := startCollector(t)
	for i := range o.Nodes {
		o.Stop(i)
		o.Nodes[i].Config.TracesTo, o.Nodes[i].Config.TracesRatio = all.url, 1
		o.Restart(i)
	}
	o.WaitReady()
	refused, header := parent(2)
	r, err := o.Sign(o.Nodes[0].URL, http.MethodGet, "/v1.1/subjects", nil, header)
	must.Do(t, err)
	r.Target += "?limit=1" // not what was signed
	if a, err := o.Send(t.Context(), o.Nodes[0].URL, r); err != nil || a.Status != http.StatusForbidden {
		t.Fatalf("got %d, %v, want 403", a.Status, err)
	}
	sampled, header := parent(3)
	o.Call(t, o.Nodes[0].URL, http.MethodGet, "/v1.1/subjects", nil, header)
	all.wait(t, sampled, "GET /v1.1/subjects")
	if got := len(c.of(unsampled)) + len(all.of(refused)); got != 0 {
		t.Errorf("a client has ordered %d spans", got)
	}
}
