package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/nodetest"
	"facet/shard/job"
)

const (
	floodCases  = 9000
	floodAtOnce = 60
	floodPhotos = 20_000
	quietDoubts = 300
	quietApps   = 30 // of 60 cases a minute each
	caseReads   = 300
)

// BenchmarkReviews floods a tenant that has 9,000 open cases with 60 verifications at once, doubtful ones and then
// verified ones, while another tenant verifies 300 strangers. ratio is the p99 of these beside doubts by that beside
// matches. read is a case of 10,000 by its id, first the first one of them.
//
// Goals: ratio ≤ 2, read-p99-ms ≤ 2, without-case 0.
func BenchmarkReviews(b *testing.B) {
	flood := startReviewOn(b, nodetest.Options{Shards: 1}, 1)
	quiet, many := reviewOf(b, flood.cluster, "quiet", 1), reviewOf(b, flood.cluster, "many", 1)
	flood.fill(b, floodCases)
	many.fill(b, job.CasesMax)
	photos := make([]string, floodPhotos)
	for i := range photos {
		photos[i] = stranger(b, "person 0", fmt.Sprint("flood ", i))
	}
	var keys []string // of applications
	for i := range quietApps {
		var app struct{ APIKey string }
		expect(b, quiet.admin, http.StatusOK, quiet.url(0), http.MethodPost, "/api/applications", map[string]any{
			"name": fmt.Sprint(i), "galleryId": galleryID(b, quiet.admin, quiet.url(0)), "faceMinimumQualityScore": .45, "reviewThreshold": 1,
		}).Decode(b, &app)
		keys = append(keys, app.APIKey)
	}
	time.Sleep(3 * time.Second) // all nodes know them
	for b.Loop() {
		round := time.Now().String()
		matches, _ := flood.beside(b, quiet, keys, round, func(int) string { return "person 0" })
		doubts, without := flood.beside(b, quiet, keys, round+"d", func(i int) string { return photos[i%len(photos)] })
		b.ReportMetric(doubts.at(.99)/matches.at(.99), "ratio")
		b.ReportMetric(matches.at(.99), "beside-matches-p99-ms")
		b.ReportMetric(doubts.at(.99), "beside-doubts-p99-ms")
		b.ReportMetric(doubts.at(.5), "beside-doubts-p50-ms")
		b.ReportMetric(float64(without), "without-case")
	}
	var reads latencies
	for i := range caseReads {
		began := time.Now()
		expect(b, many.admin, http.StatusOK, many.url(i%3), http.MethodGet, "/v1.1/cases/"+(id.UUID{1, byte(i >> 8), byte(i)}).String(), nil)
		if reads = append(reads, time.Since(began)); i == 0 {
			b.ReportMetric(reads.at(0), "first-read-ms")
		}
	}
	b.ReportMetric(reads.at(.5), "read-p50-ms")
	b.ReportMetric(reads.at(.99), "read-p99-ms")
	b.ReportMetric(0, "ns/op")
}

// fill gives the gallery open cases.
func (r *review) fill(b *testing.B, number int) {
	b.Helper()
	now := time.Now().UnixMilli()
	for _, m := range r.cluster.Nodes {
		m.Node.FillCases(b, id.Gallery{UUID: parsed(b, galleryID(b, r.admin, r.url(0)))}, number, job.Case{
			Subject: subjectID(b, r.ids["staff/0"]), Application: id.Application{UUID: parsed(b, r.app)}, Score: 5000, Threshold: 7000, Needed: 1,
			Created: now - 2*time.Minute.Milliseconds(), Expires: now + 24*time.Hour.Milliseconds(), Reference: "visits/2030-01-31/0815",
		})
	}
}

// latencies are times of requests.
type latencies []time.Duration

// at returns a quantile in milliseconds.
func (l latencies) at(q float64) float64 {
	l = slices.Sorted(slices.Values(l))
	return float64(l[int(q*float64(len(l)-1))].Microseconds()) / 1000
}

// beside verifies photos against the subject of r, floodAtOnce at once, while quiet has quietDoubts doubts. It returns
// the times of those, and how many of them have no case.
func (r *review) beside(b *testing.B, quiet *review, keys []string, round string, photo func(i int) string) (times latencies, without int) {
	b.Helper()
	var work sync.WaitGroup
	stop := make(chan struct{})
	for worker := range floodAtOnce {
		work.Go(func() {
			for i := worker; ; i += floodAtOnce {
				select {
				case <-stop:
					return
				default:
				}
				body := map[string]any{"id": r.ids["staff/0"], "probe": nodetest.Image(photo(i))}
				if a := r.admin.Call(b, r.url(i%3), http.MethodPost, "/v1.1/face/verify", body); a.Status != http.StatusOK && a.Status != http.StatusNotFound {
					b.Errorf("the flood: %d %s", a.Status, a.Body)
					return
				}
			}
		})
	}
	time.Sleep(time.Second)
	for i := range quietDoubts {
		body := map[string]any{"id": quiet.ids["staff/0"], "probe": nodetest.Image(stranger(b, "person 0", fmt.Sprint(round, i)))}
		quiet.admin.APIKey = keys[i%len(keys)]
		var a struct{ CaseID string }
		began := time.Now()
		expect(b, quiet.admin, http.StatusNotFound, quiet.url(i%3), http.MethodPost, "/v1.1/face/verify", body).Decode(b, &a)
		if times = append(times, time.Since(began)); a.CaseID == "" {
			without++
		}
	}
	close(stop)
	work.Wait()
	return times, without
}
