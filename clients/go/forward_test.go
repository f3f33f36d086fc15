package client_test

import (
	"net/url"
	"testing"

	"facet.internal/client"
)

// forwarded returns a request as a page makes it.
func forwarded(t *testing.T, method, target, body string) client.Forwarded {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	return client.Forwarded{Method: method, URL: u, ContentType: "application/json", Body: []byte(body)}
}

func TestForwardKeepsBodyKeyAndTarget(t *testing.T) {
	t.Parallel()
	s, c := play(t, client.Config{}, hangUp, say(500, failed), say(201, `{"id":"s"}`))
	f := forwarded(t, "POST", "/v1.1/subjects?b=2%2B2&a=x%20y+z", `{"face": "not checked here`)
	f.IdempotencyKey, f.APIKey = "mine", "app"
	got, err := c.Forward(t.Context(), f)
	if err != nil || got.Status != 201 || string(got.Body) != `{"id":"s"}` {
		t.Fatalf("got %d %s, %v", got.Status, got.Body, err)
	}
	for _, r := range s.requests() {
		if r.target != "/v1.1/subjects?a=x%20y%20z&b=2%2B2" || r.key != "mine" || r.body != string(f.Body) {
			t.Errorf("sent %+v", r)
		}
	}
}

func TestForwardReturnsRefusals(t *testing.T) {
	t.Parallel()
	f := func(method string, want int, steps ...int) {
		t.Helper()
		s, c := play(t, client.Config{Tries: 2}, hangUp)
		s.steps = nil
		for _, status := range steps {
			s.steps = append(s.steps, say(status, `{"message":"Not found.","errorType":""}`))
		}
		got, err := c.Forward(t.Context(), forwarded(t, method, "/v1.1/subjects/x%2Fy", ""))
		if err != nil || got.Status != want {
			t.Errorf("%s %v: got %d, %v, want %d", method, steps, got.Status, err, want)
		}
	}
	f("GET", 404, 404)
	f("GET", 403, 403)
	f("DELETE", 404, 404)
	f("DELETE", 204, 500, 404) // the first try may have done it
	f("GET", 500, 500, 500)
	_, c := play(t, client.Config{Tries: 1}, hangUp)
	if got, err := c.Forward(t.Context(), forwarded(t, "GET", "/v1.1/health", "")); err == nil {
		t.Errorf("without an answer: got %d", got.Status)
	}
	for _, target := range []string{"/v1.1//x", "/v1.1/%2E%2E/x", "/"} {
		if got, err := c.Forward(t.Context(), forwarded(t, "GET", target, "")); err == nil {
			t.Errorf("%s: got %d", target, got.Status)
		}
	}
}
