package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
)

// probesBody returns a body with so many photos.
func probesBody(n int) string {
	return fmt.Sprintf(`{"probes":[%s]}`, strings.TrimSuffix(strings.Repeat(`"aW1nIGFsaWNl",`, n), ","))
}

func TestProbesAreTwoToTen(t *testing.T) {
	t.Parallel()
	r, clock := limited(t, Rules{})
	for n, want := range map[int]int{0: 400, 1: 400, 2: 404, 10: 404, 11: 400, 1000: 400} {
		if a := ask(r, clock, "biometric", "app", "POST", "/v1.1/face/search", probesBody(n)); a.status != want {
			t.Errorf("search with %d photos: %d %s, want %d", n, a.status, a.body, want)
		}
		face := strings.Replace(probesBody(n), "{", `{"face":"aW1nIGFsaWNl",`, 1)
		if a := ask(r, clock, "biometric", "", "POST", "/v1.1/face/verify", face); (a.status == 200) != (want == 404) {
			t.Errorf("verify with %d photos: %d %s", n, a.status, a.body)
		}
	}
}

// A refused request gets through after Retry-After, however small the burst is. With no token at all
// it is refused before facet knows how many photos it has, and then once more.
func TestProbesCountEachPhoto(t *testing.T) {
	t.Parallel()
	f := func(rules Rules, photos []int, want string) {
		t.Helper()
		var bodies []string
		for _, n := range photos {
			bodies = append(bodies, probesBody(n))
		}
		if got := paced(t, rules, "/v1.1/face/search", bodies...); got != want {
			t.Errorf("%v photos: %v, want %s", photos, got, want)
		}
	}
	ten, four := Rate{PerSecond: 1, Burst: 10}, Rate{PerSecond: 1, Burst: 4}
	f(Rules{TenantRate: ten}, []int{3, 7, 2}, "404 404 1s 2s 404")
	f(Rules{TenantRate: ten}, []int{3, 9}, "404 3s 404")
	f(Rules{TenantRate: ten, ApplicationRate: four}, []int{4, 4, 10}, "404 1s 4s 404 1s 4s 404")
	f(Rules{TenantRate: Rate{PerSecond: 1, Burst: 1}}, []int{10, 2}, "404 1s 404")
}

// paced sends each body, at most three times, after the Retry-After of its refusals. It returns the
// waits and the last statuses.
func paced(t *testing.T, rules Rules, target string, bodies ...string) string {
	t.Helper()
	r, clock := limited(t, rules)
	var got []string
	for _, body := range bodies {
		for range 3 {
			a := ask(r, clock, "biometric", "app", "POST", target, body)
			if a.status != 429 {
				got = append(got, fmt.Sprint(a.status))
				break
			}
			wait, err := time.ParseDuration(a.header.Get("Retry-After") + "s")
			must.Do(t, err)
			clock.move(wait)
			got = append(got, wait.String())
		}
	}
	return strings.Join(got, " ")
}
