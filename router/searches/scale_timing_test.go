package searches

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"facet/internal/id"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/clustertest"
	"facet/shard"
)

// weighed is a peer that answers a search with hits, and counts the bytes of both messages.
type weighed struct {
	hits            int
	request, answer int
}

func (*weighed) Self() id.Member { return "self" }

func (w *weighed) Call(_ context.Context, _ id.Member, name string, body []byte) ([]byte, error) {
	if name != ShardSearch.Name {
		return nil, fmt.Errorf("%s is no search", name)
	}
	w.request = len(body)
	list := make([]NotedHit, w.hits)
	for i := range list {
		list[i] = NotedHit{Hit: shard.Hit{
			Subject: id.Subject{UUID: id.Random([16]byte{1, byte(i)})}, Event: id.Event{UUID: id.Random([16]byte{2, byte(i)})}, Score: 9000 - i,
		}}
	}
	out, err := cbor.Marshal(list)
	w.answer = len(out)
	return out, err
}

// BenchmarkScaleSearchMessages reports the bytes of the request to one shard and of its answer, without
// the frame (25 bytes, 9 of an answer) and TLS, for a probe of 192 numbers.
func BenchmarkScaleSearchMessages(b *testing.B) {
	for _, hits := range []int{0, 10, 50} {
		b.Run(fmt.Sprintf("hits=%d", hits), func(b *testing.B) {
			w := &weighed{hits: hits}
			c := cluster.New(cluster.Config{Groups: clustertest.NewFounded(), Peers: w, Log: slog.New(slog.DiscardHandler)})
			q := SearchQuery{
				Gallery: id.Gallery{UUID: id.Random([16]byte{3})}, Generation: 1, Epoch: 1, Probe: make([]float32, 192),
				Threshold: 7000, Limit: 10, Model: id.Model{1}, Notes: true, Share: cluster.RandomID(),
			}
			for i := range q.Probe {
				q.Probe[i] = .1 / float32(i+3) // no short form
			}
			for b.Loop() {
				if _, err := calls.ScatterAny(b.Context(), c.Calls, ShardSearch, []id.Shard{1}, q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(w.request), "B/request")
			b.ReportMetric(float64(w.answer), "B/answer")
		})
	}
}
