package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"facet/router"
	"facet/router/faces"
)

// facesBodyOf returns the body of a comparison of so many photos and tokens.
func facesBodyOf(photos, tokens int) string {
	list := strings.Repeat(`{"face":"aW1nIGFsaWNl"},`, photos) + strings.Repeat(`{"token":"AA"},`, tokens)
	return `{"faces":[` + strings.TrimSuffix(list, ",") + `]}`
}

func TestComparisonsAreBounded(t *testing.T) {
	t.Parallel()
	r, clock := limited(t, Rules{})
	f := func(photos, tokens, want int, message string) {
		t.Helper()
		a := ask(r, clock, "reader", "", "POST", "/v1.1/face/compare", facesBodyOf(photos, tokens))
		if a.status != want || !strings.Contains(a.body, message) {
			t.Errorf("%d photos, %d tokens: %d %.300s, want %d %q", photos, tokens, a.status, a.body, want, message)
		}
	}
	f(0, 0, 400, "1 to 1000 objects")
	f(1, 0, 200, `"scores":[]`)
	f(200, 0, 200, "")
	f(201, 0, 400, "faces has 201 photos; at most 200 are permitted")
	f(200, 800, 200, "")
	f(0, 1000, 200, "")
	f(0, 1001, 400, "1 to 1000 objects")
	f(200, 801, 400, "1 to 1000 objects")
	long := fmt.Sprintf(`{"faces":[{"token":"%s"}]}`, strings.Repeat("A", faces.FaceTokenMax+1))
	if a := ask(r, clock, "reader", "", "POST", "/v1.1/face/compare", long); a.status != 400 || !strings.Contains(a.body, "token must be at most") {
		t.Errorf("a token that is too long: %d %s", a.status, a.body)
	}
}

// A token costs nothing beyond its request.
func TestComparisonCountsEachPhoto(t *testing.T) {
	t.Parallel()
	f := func(want string, bodies ...string) {
		t.Helper()
		ten := Rules{TenantRate: Rate{PerSecond: 1, Burst: 10}}
		if got := paced(t, ten, "/v1.1/face/compare", bodies...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f("200 200 1s 2s 200", facesBodyOf(3, 0), facesBodyOf(7, 0), facesBodyOf(2, 0))
	f("200 200 200", facesBodyOf(0, 500), facesBodyOf(1, 99), facesBodyOf(8, 3))
	f("200 10s 200", facesBodyOf(9, 0), facesBodyOf(200, 0)) // a bucket of fewer gives all of them
}

// The scores of all bodies together take no more memory than bodies may.
func TestComparisonAnswersAreBounded(t *testing.T) {
	t.Parallel()
	clock := &hand{now: testNow}
	r := start(t, func(c *Config) { c.Limits, c.Now = Limits{BodyBytes: 1 << 20, BodiesBytes: 2 << 20}, clock.time })
	if a := ask(r, clock, "reader", "", "POST", "/v1.1/face/compare", facesBodyOf(0, 300)); a.status != 200 {
		t.Errorf("300 tokens: %d %.300s", a.status, a.body)
	}
	if a := ask(r, clock, "reader", "", "POST", "/v1.1/face/compare", facesBodyOf(0, 1000)); a.status != 429 {
		t.Errorf("1000 tokens: %d %.300s, want 429", a.status, a.body)
	}
	if a := ask(r, clock, "reader", "", "POST", "/v1.1/face/compare", facesBodyOf(0, 300)); a.status != 200 {
		t.Errorf("300 tokens again: %d %.300s", a.status, a.body)
	}
}

func TestMissingScoresAreNull(t *testing.T) {
	t.Parallel()
	if got := string(wireScores([]int16{0, router.NoScore, 9999})); got != "[0,null,9999]" {
		t.Error(got)
	}
	if got := string(wireScores([]int16{})); got != "[]" {
		t.Error(got)
	}
}
