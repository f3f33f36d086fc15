package rollback

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm"
)

// BenchmarkScaleMarks has a table of rows that 192 nodes share. It reports the bytes of the file and the
// time to write it, which a node does each second in which a mark has changed, and the time to look for
// what changed, which it does each second for each other node.
func BenchmarkScaleMarks(b *testing.B) {
	const nodes = 192
	for _, rows := range []int{1 << 10, rowsMax} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			t, err := Open(b.TempDir(), self, slog.New(slog.DiscardHandler))
			must.Do(b, err)
			for i := range rows {
				node := id.Node{UUID: id.Random([16]byte{byte(i % nodes)})}
				t.Marks(id.Shard(i/nodes)).Add(id.NewMember(node, 1), raftfsm.Mark{Life: 1, Term: 17, Index: 1_000_000})
			}
			if len(t.rows) != rows {
				b.Fatalf("%d rows", len(t.rows))
			}
			var saving, looking time.Duration
			for b.Loop() {
				t.dirty = true
				begin := time.Now()
				must.Do(b, t.Save())
				saving += time.Since(begin)
				begin = time.Now()
				for range nodes - 1 {
					t.Since(t.version)
				}
				looking += time.Since(begin)
			}
			info, err := os.Stat(t.path)
			must.Do(b, err)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(info.Size())/float64(rows), "B/row")
			b.ReportMetric(saving.Seconds()*1e3/float64(b.N), "save-ms")
			b.ReportMetric(looking.Seconds()*1e3/float64(b.N), "look-ms")
		})
	}
}
