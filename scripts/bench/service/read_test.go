package service

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/testkit"
)

func TestTimeGoesToInnermostKnownFrame(t *testing.T) {
	t.Parallel()
	text := `File: bench-service
Type: cpu
Duration: 2s, Total samples = 100ms
-----------+-------------------------------------------------------
      30ms   runtime.memmove
             facet/shard/kernel.(*work).scan
             facet/shard.(*Shard).Search
             github.com/valyala/fasthttp.(*Server).serveConn
-----------+-------------------------------------------------------
      20ms   crypto/sha256.block (inline)
             facet/node/sigv4.Verify
             facet/node/httpapi.(*Server).answer
-----------+-------------------------------------------------------
      10ms   crypto/sha256.block
             crypto/tls.(*Conn).Write
-----------+-------------------------------------------------------
      1.50s  something.unknown
-----------+-------------------------------------------------------
`
	got := map[string]time.Duration{}
	all := readTraces(strings.NewReader(text), got)
	want := map[string]time.Duration{
		"kernel: scan": 30 * time.Millisecond, "signature": 20 * time.Millisecond,
		"TLS of clients and peers": 10 * time.Millisecond, elsewhere: 1500 * time.Millisecond,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("places (want, got):\n%s", d)
	}
	if all != 1560*time.Millisecond {
		t.Errorf("all: got %v", all)
	}
}

func TestMeansCoverTimeBetweenReadings(t *testing.T) {
	t.Parallel()
	page := func(sum, count string) string {
		return "# HELP facet_search_duration_seconds Time.\n" +
			`facet_search_duration_seconds_sum{stage="shards"} ` + sum + "\n" +
			`facet_search_duration_seconds_count{stage="shards"} ` + count + "\n"
	}
	before, after := testkit.Figures{}, testkit.Figures{}
	for _, node := range []string{"a", "b"} {
		before.Read(strings.NewReader(page("1.5", "10")))
		if node == "a" {
			after.Read(strings.NewReader(page("1.5", "10")))
		} else {
			after.Read(strings.NewReader(page("1.6e+00", "20")))
		}
	}
	ms, count := after.Mean(before, "facet_search_duration_seconds", `{stage="shards"}`)
	if count != 10 || ms < 9.99 || ms > 10.01 {
		t.Errorf("got %v ms of %v, want 10 of 10", ms, count)
	}
	if got := stagesOf(before, after).shards; got < 9.99 || got > 10.01 {
		t.Errorf("shards: got %v, want 10", got)
	}
}
