package traffic

import (
	"encoding/json"
	"testing"

	"facet/internal/must"
)

func TestReceiptsOnlyGrow(t *testing.T) {
	t.Parallel()
	f := func(right bool, texts ...string) {
		t.Helper()
		var known receipts
		for i, text := range texts {
			var got receipt
			must.Do(t, json.Unmarshal([]byte(text), &got))
			next, err := known.with(&got, known)
			if (err == nil) != (right || i < len(texts)-1) {
				t.Errorf("receipt %d: %s: %v", i, text, err)
			}
			known = next
		}
	}
	const good = `{"epoch":2,"list":[3,1],"shards":[{"shard":1,"index":7,"active":5,"searched":3,"leftOut":{"tags":2}},{"shard":3,"index":2}]}`
	f(true, good, good)
	f(true, good, `{"epoch":3,"list":[1],"shards":[{"shard":1,"index":8,"active":4,"searched":4}]}`)
	f(false, `{"epoch":2,"list":[1],"shards":[{"shard":1,"index":7,"active":5,"searched":4}]}`)
	f(false, `{"epoch":2,"list":[1,3],"shards":[{"shard":1,"index":7}]}`)
	f(false, `{"epoch":2,"list":[],"shards":[]}`)
	f(false, good, `{"epoch":2,"list":[1,3],"shards":[{"shard":1,"index":6},{"shard":3,"index":2}]}`)
	f(false, good, `{"epoch":2,"list":[1,3],"shards":[{"shard":1,"index":7,"active":6,"searched":6},{"shard":3,"index":2}]}`)
	f(false, good, `{"epoch":2,"list":[1],"shards":[{"shard":1,"index":8}]}`)
	f(false, good, `{"epoch":1,"list":[1],"shards":[{"shard":1,"index":8}]}`)
	if _, err := (receipts{}).with(nil, receipts{}); err == nil {
		t.Error("no receipt is taken for one")
	}
}
