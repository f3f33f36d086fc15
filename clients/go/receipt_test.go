package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"facet.internal/client"
)

func TestReceiptThatFailsIsRefused(t *testing.T) {
	t.Parallel()
	shard := func(n, index, active, searched, tags int) string {
		return fmt.Sprintf(`{"shard":%d,"index":%d,"active":%d,"searched":%d,"leftOut":{"tags":%d}}`, n, index, active, searched, tags)
	}
	receipt := func(epoch int, list string, shards ...string) string {
		return fmt.Sprintf(`,"receipt":{"epoch":%d,"list":[%s],"shards":[%s]}`, epoch, list, strings.Join(shards, ","))
	}
	good := receipt(2, "1,4", shard(1, 10, 5, 5, 0), shard(4, 20, 7, 3, 4))
	tags := []string{"night"}
	f := func(what string, fails bool, answers ...string) {
		t.Helper()
		var steps []func(http.ResponseWriter)
		for _, a := range answers {
			steps = append(steps, say(http.StatusNotFound, `{"message":"none","candidates":[]`+a+`}`))
		}
		_, c := play(t, client.Config{APIKey: "key"}, steps...)
		for i := range answers {
			found, err := c.Search(t.Context(), client.SearchQuery{Probe: []byte("x"), Tags: tags, Receipt: true})
			if want := fails && i == len(answers)-1; errors.Is(err, client.ErrReceipt) != want || !want && (err != nil || found.Receipt == nil) {
				t.Errorf("%s: answer %d: %+v, %v", what, i, found.Receipt, err)
			}
		}
	}
	f("complete", false, good, good)
	f("later", false, good, receipt(3, "1,4,9", shard(9, 1, 0, 0, 0), shard(1, 11, 5, 5, 0), shard(4, 20, 7, 7, 0)))
	f("an event was skipped", true, receipt(2, "1,4", shard(1, 10, 5, 4, 0), shard(4, 20, 7, 3, 4)))
	f("an event counts twice", true, receipt(2, "1,4", shard(1, 10, 5, 5, 0), shard(4, 20, 7, 4, 4)))
	f("a shard was skipped", true, receipt(2, "1,4", shard(1, 10, 5, 5, 0)))
	f("a shard is twice in it", true, receipt(2, "1,4", shard(1, 10, 5, 5, 0), shard(1, 10, 5, 5, 0)))
	f("a shard of no list", true, receipt(2, "1", shard(1, 10, 5, 5, 0), shard(4, 20, 7, 3, 4)))
	f("no shard", true, receipt(2, ""))
	f("none", true, "")
	f("a stale replica", true, good, receipt(2, "1,4", shard(1, 9, 5, 5, 0), shard(4, 20, 7, 3, 4)))
	f("an old list", true, good, receipt(1, "1", shard(1, 10, 5, 5, 0)))
	f("another list of the epoch", true, good, receipt(2, "1", shard(1, 10, 5, 5, 0)))
	f("a negative number of active events", true, receipt(2, "1", shard(1, 10, -5, -5, 0)))
	f("a negative number of searched events", true, receipt(2, "1", shard(1, 10, 3, -2, 5)))
	f("a negative number of events left out", true, receipt(2, "1", shard(1, 10, 3, 5, -2)))
	f("an unknown reason", true, receipt(2, "1", `{"shard":1,"index":10,"active":5,"searched":3,"leftOut":{"tags":1,"age":1}}`))
	f("a shard is twice in the list", true, receipt(2, "1,1", shard(1, 10, 5, 5, 0), shard(1, 10, 5, 5, 0)))
	tags = nil
	f("no reason", false, receipt(2, "1", `{"shard":1,"index":10,"active":5,"searched":5}`))
	f("left out by tag in a search without tags", true, good)
}

func TestNegativeIndexOfReceiptIsRefused(t *testing.T) {
	t.Parallel()
	_, c := play(t, client.Config{APIKey: "key"}, say(http.StatusNotFound, `{"message":"none","candidates":[],"receipt":{"epoch":2,"list":[1],
		"shards":[{"shard":1,"index":-10,"active":5,"searched":5,"leftOut":{"tags":0}}]}}`))
	if found, err := c.Search(t.Context(), client.SearchQuery{Probe: []byte("x"), Receipt: true}); err == nil || !strings.Contains(err.Error(), "index") {
		t.Errorf("%+v, %v", found.Receipt, err)
	}
}
