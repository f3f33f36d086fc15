package bench

import (
	"encoding/base64"
	"net/http"
	"slices"
	"testing"
	"time"

	"facet/engine/enginetest"
	"facet/node/nodetest"
	"facet/node/sigv4"
)

// BenchmarkRequest times one search and one registration of a real photo over HTTPS
// with three nodes in this process. In turn it times the engine's work on the same
// photo (ExtractLarge, the call that the service makes). x-engine is the ratio of
// the medians. The part above 1 is the service's own: TLS, signature, JSON, base64,
// Raft with fsync, search.
func BenchmarkRequest(b *testing.B) {
	engine := enginetest.Shared(b)
	cluster := nodetest.Start(b, nodetest.Options{Extractor: engine, Table: engine.Table()})
	client := cluster.Client("bench", nil)
	url := cluster.Nodes[0].URL
	a := client.Call(b, url, http.MethodPost, "/api/galleries", map[string]any{
		"name": "bench", "description": "", "size": 1_000_000, "faceMinimumQualityScore": 0.45,
	})
	var g struct{ APIKey string }
	a.Decode(b, &g)
	client.APIKey = g.APIKey
	photo := enginetest.Photo(b, "face_recognition/obama.jpg")
	text := base64.StdEncoding.EncodeToString(photo)

	run := func(name, target string, body map[string]any, want int) {
		b.Run(name, func(b *testing.B) {
			var own, whole []time.Duration
			for b.Loop() {
				begin := time.Now()
				if _, err := engine.ExtractLarge(b.Context(), photo, .3); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				a := client.Call(b, url, http.MethodPost, target, body,
					sigv4.Header{Name: "idempotency-key", Value: name + time.Now().String()})
				if a.Status != want {
					b.Fatalf("%s: %d %s", name, a.Status, a.Body)
				}
				own, whole = append(own, middle.Sub(begin)), append(whole, time.Since(middle))
			}
			engineTime, requestTime := median(own), median(whole)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(engineTime.Seconds()*1e3, "engine-ms")
			b.ReportMetric(requestTime.Seconds()*1e3, "request-ms")
			b.ReportMetric(float64(requestTime)/float64(engineTime), "x-engine")
		})
	}
	run("register", "/v1.1/subjects", map[string]any{"face": text}, http.StatusCreated)
	run("search", "/v1.1/face/search", map[string]any{"probe": text}, http.StatusOK)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
