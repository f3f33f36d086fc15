package links

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/transport"
)

// BenchmarkScaleLinks takes the answers of all other nodes about their links once, which a node does
// every restInterval. cores is the processor time for that beside calls, B/s what the answers to one node
// take without frames and TLS.
func BenchmarkScaleLinks(b *testing.B) {
	for _, nodes := range []int{3, 16, 64, 128, 192} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			l := New(Config{
				Name: id.Node.String, Log: slog.New(slog.DiscardHandler), Wall: time.Now,
				Heard: func(id.Node, time.Time, time.Time, time.Time) {},
			})
			l.route = func(string, transport.Route) {}
			for i := range nodes - 1 {
				k := &link{node: nodeNumber(byte(i)), last: time.Now(), heard: map[id.Node]time.Time{}}
				l.links[k.node] = k
			}
			answer, err := json.Marshal(l.own(time.Now()))
			must.Do(b, err)
			l.call = func(context.Context, *link) ([]byte, error) { return answer, nil }
			for b.Loop() {
				for _, k := range l.links {
					l.ask(b.Context(), k)
				}
			}
			rounds := float64(time.Second) / float64(restInterval)
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*rounds, "cores")
			b.ReportMetric(float64(len(answer)), "B/answer")
			b.ReportMetric(float64(len(answer)*(nodes-1))*rounds, "B/s")
		})
	}
}
