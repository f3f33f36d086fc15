package httpapi

import (
	"encoding/base64"
	"testing"
	"time"

	"facet/internal/id"
)

// A tenant with its most searches in work gets 429 for one more, also before its body is
// read. Other requests of the tenant, and other tenants, are served.
func TestSearchesInWorkAreBounded(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) {
		c.Quota = func(who id.Tenant) Quota {
			if who == tenantA {
				return Quota{Searches: 2}
			}
			return Quota{}
		}
	})
	s, clock := r.service, &hand{now: testNow}
	search := func(as, key string) received {
		return ask(r, clock, as, key, "POST", "/v1.1/face/search", `{"probe":"`+base64.StdEncoding.EncodeToString([]byte("slow"))+`"}`)
	}
	answers := make(chan received, 2)
	for range 2 {
		go func() { answers <- search("reader", "app") }()
		<-s.entered
	}
	a := search("biometric", "second")
	if a.status != 429 || a.body != `{"message":"The tenant has too many searches in work.","reason":"Quota","quota":"searches"}` || a.header.Get("Retry-After") != "1" {
		t.Errorf("a third search: %d %s %v", a.status, a.body, a.header)
	}
	if a := ask(r, clock, "reader", "app", "GET", "/v1.1/tags", ""); a.status != 200 {
		t.Errorf("another request: %d %s", a.status, a.body)
	}
	go func() { answers <- search("other", "foreign") }()
	<-s.entered
	close(s.release)
	for range 3 {
		if a := <-answers; a.status != 404 {
			t.Errorf("a search that was in work: %d %s", a.status, a.body)
		}
	}
	if a := search("reader", "app"); a.status != 404 {
		t.Errorf("a search when the others have ended: %d %s", a.status, a.body)
	}
	if n := len(r.server.searches.of); n != 0 {
		t.Errorf("%d tenants have searches in work", n)
	}
}

// A rate that an operator changes counts from the next request on.
func TestChangedRateCountsAtOnce(t *testing.T) {
	t.Parallel()
	now, perSecond := testNow, 2.0
	r := newRates(Rate{}, Rate{})
	r.tenants.own = func(id.UUID) Rate { return Rate{PerSecond: perSecond} }
	took := func() (n int) {
		for range 100 {
			if r.take(now, tenantNo(1), id.Application{}, one) == 0 {
				n++
			}
		}
		return n
	}
	f := func(what string, set float64, want int) {
		t.Helper()
		if perSecond = set; took() != want {
			t.Errorf("%s: not %d requests", what, want)
		}
	}
	f("at first", 2, 2)
	f("more", 50, 50)
	f("without a pause", 50, 0)
	now = now.Add(time.Second)
	f("a second later", 50, 50)
	f("unbounded", 0, 100)
	f("bounded again", 3, 3)
}
