package operation

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"

	"facet/internal/codec"
)

// counter counts the bytes written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// BenchmarkWriteFull writes the memory of a shard with the most operations, compressed as a
// snapshot is (zstd's fastest level). MB is the compressed size, B/outcome that of one
// outcome.
func BenchmarkWriteFull(b *testing.B) {
	limits := Limits{Plain: 1 << 18, Keyed: 1 << 19}
	m := New(limits)
	random := rand.NewChaCha8([32]byte{1})
	read := func(to []byte) {
		if _, err := random.Read(to); err != nil {
			b.Fatal(err)
		}
	}
	m.Advance(1_700_000_000_000)
	for i := range limits.Plain + limits.Keyed {
		o := Outcome{Kind: 2, Number: uint32(i % 3)}
		read(o.Name.Op[:])
		read(o.Name.Request[:])
		read(o.IDs[0][:])
		read(o.IDs[1][:])
		binary.BigEndian.PutUint16(o.Scope[:], uint16(i%20)) // galleries
		o.Name.Keyed = i >= limits.Plain
		m.Advance(m.Clock() + int64(i%2))
		m.Remember(o)
	}
	for b.Loop() {
		var size counter
		z, err := zstd.NewWriter(&size, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			b.Fatal(err)
		}
		w := codec.NewWriter(z, codec.Magic{}, 1)
		m.Freeze().Write(w)
		if _, err := w.Close(); err != nil {
			b.Fatal(err)
		}
		if err := z.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(size)/1e6, "MB")
		b.ReportMetric(float64(size)/float64(m.Len()), "B/outcome")
	}
}
