package admin_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"facet/node/nodetest"
	"facet/node/wire"
)

// A key that has ended before it begins would be of no use, or would never end; a holder that looks
// like another one would be another one.
func TestKeysOfNoUseAreRefused(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, c *nodetest.Cluster) {
		c.ClientOf("bank")
		o := newOperator(t, c)
		order := func(want int, text string, terms map[string]any) {
			t.Helper()
			in := map[string]any{"tenant": "bank", "role": "search-only"}
			maps.Copy(in, terms)
			if status, body := o.call(t, 0, http.MethodPost, wire.PathKeys, in); status != want || !strings.Contains(string(body), text) {
				t.Errorf("%v: %d %s, want %d and %q", terms, status, body, want, text)
			}
		}
		for _, end := range []string{"1900-01-01T00:00:00Z", "1970-01-01T00:00:00Z", time.Now().UTC().Format(time.RFC3339)} {
			order(400, "ended at "+end+" already", map[string]any{"ends": end})
		}
		order(400, "in the year 1", map[string]any{"ends": "0001-01-01T00:00:00Z"})
		for name, what := range map[string]string{
			"door\u200b3": "U+200B", "door\u00a03": "U+00A0", "\u202edoor": "U+202E", "door\ufe0f": "U+FE0F", "door\u3164": "U+3164", "door\u2800": "U+2800",
			"door\U000e0033": "U+E0033", " door": "blanks", "door  3": "blanks", "do\u0308or": "form C",
		} {
			order(400, what, map[string]any{"holder": name})
		}
		ends := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		door := map[string]any{"holder": "Müller, Tür 3 🚪", "ends": ends}
		order(201, "", door)
		time.Sleep(2 * time.Hour)
		order(400, "ended at "+ends.Format(time.RFC3339)+" already", map[string]any{"holder": door["holder"], "rotate": true})
		order(201, "", map[string]any{"holder": door["holder"], "rotate": true, "ends": ends.Add(8 * time.Hour)})
	})
}
