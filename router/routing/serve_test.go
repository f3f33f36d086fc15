package routing

import (
	"log/slog"
	"testing"

	"facet/internal/id"
	"facet/router/clustertest"
)

func FuzzServeRefusesGarbage(f *testing.F) {
	f.Add("shard.search", []byte{0xa2, 0x01, 0x01, 0x02, 0xa0})
	f.Add("meta.propose", []byte{})
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		r := New(Config{Groups: clustertest.Nowhere{Nodes: []id.Member{"a", "b", "c"}}, Peers: clustertest.Silent{}, Log: slog.New(slog.DiscardHandler)})
		if _, err := r.Serve(t.Context(), name, body); err == nil {
			t.Errorf("%s with %x was carried out on a node that holds no group", name, body)
		}
	})
}
