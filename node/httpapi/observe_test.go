package httpapi

import (
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/trace"
)

// outcomes gets what a Server reports to its Meter.
type outcomes chan Outcome

func (o outcomes) Answered(out Outcome) { o <- out }

func extraction(image string) signed {
	body := `{"faces":"` + base64.StdEncoding.EncodeToString([]byte(image)) + `"}`
	return signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: body}
}

func TestMeterGetsEveryAnswer(t *testing.T) {
	t.Parallel()
	told := make(outcomes, 1)
	r := start(t, func(c *Config) { c.Meter, c.TenantRate = told, Rate{PerSecond: .001, Burst: 5} })
	f := func(q signed, operation string, status int, refusal string) {
		t.Helper()
		a := r.send(q)
		got := <-told // after the client has its answer
		if got.Operation != operation || got.Status != status || got.Status != a.status || got.Refusal != refusal ||
			got.BodyBytes != len(q.body) || got.AnswerBytes != len(a.body) || got.Took <= 0 {
			t.Errorf("got %+v, want %q %d %q, %d and %d bytes", got, operation, status, refusal, len(q.body), len(a.body))
		}
	}
	const extract = "POST /v1.1/face/extract"
	f(extraction("img alice"), extract, 200, "")
	f(extraction("not an image"), extract, 400, "")
	f(extraction("busy"), extract, 429, RefusedBusy)
	f(extraction("late"), extract, 500, RefusedTimeout)
	f(extraction("fault"), extract, 500, RefusedFault)
	f(extraction("img alice"), extract, 429, RefusedRate)
	f(signed{method: "GET", target: "/v1.1/subjects/4711/events"}, "GET /v1.1/subjects/{subjectId}/events", 403, "")
	f(signed{method: "GET", target: "/some/where"}, "", 403, "")
	if l := r.server.Load(); l.BodyBytes != 0 || l.BodyLimit != bodiesBytesDefault {
		t.Errorf("load at rest: %+v", l)
	}
}

// Each line about a request has its id. A slow request is a warning. No line has an
// image, a key, a signature or a secret.
func TestLogsContainNothingPersonal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, nil)
		image := "img alice" + strings.Repeat("x", 100)
		quick := r.send(extraction(image))
		fault := r.send(extraction("fault"))
		lines := logged(t, r, `msg="request answered"`, 2)
		if !strings.Contains(lines, "level=DEBUG") || !strings.Contains(lines, "req="+quick.header.Get("X-Request-Id")) ||
			!strings.Contains(lines, `operation="POST /v1.1/face/extract" status=200`) {
			t.Errorf("got %s", lines)
		}
		if !strings.Contains(r.logs.String(), "req="+fault.header.Get("X-Request-Id")) {
			t.Errorf("the fault's id is not in %s", r.logs.String())
		}
		for line := range strings.Lines(r.logs.String()) {
			if strings.Contains(line, "request") && !strings.Contains(line, "req=") {
				t.Errorf("no id in %s", line)
			}
		}
		raw := extraction(image).raw(t)
		secrets := []string{"alice", base64.StdEncoding.EncodeToString([]byte(image)), "secret of", "biometric", "Signature", raw[strings.LastIndex(raw, "Signature=")+10:][:64]}
		for _, s := range secrets {
			if strings.Contains(r.logs.String(), s) {
				t.Errorf("the log has %q", s)
			}
		}
	})
}

func TestSlowRequestIsAWarning(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, nil)
		r.server.slow = time.Nanosecond
		raw, c := extraction("img alice").raw(t), r.dial()
		for _, part := range []string{raw[:len(raw)-1], raw[len(raw)-1:]} { // the body takes long
			if _, err := c.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if line := logged(t, r, `msg="slow request"`, 1); !strings.Contains(line, "level=WARN") || !strings.Contains(line, " ms=") ||
			!strings.Contains(line, "stages=\"") || !strings.Contains(line, trace.Body+" ") {
			t.Errorf("got %s", line)
		}
	})
}

func TestSlowRequestsLeaveLinesOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, nil)
		r.server.slow = 0
		lines := func(text string) int { return strings.Count(r.logs.String(), text) }
		const requests = 200
		for range requests {
			r.send(signed{method: "GET", target: "/some/where"})
		}
		if n := lines("slow request"); n == 0 || n >= requests {
			t.Errorf("%d slow requests have %d lines", requests, n)
		}
		time.Sleep(time.Minute)
		r.send(signed{method: "GET", target: "/some/where"})
		if synctest.Wait(); lines(" omitted=") == 0 {
			t.Error("no line says how many were left out")
		}
	})
}

// logged returns the n lines that contain text.
func logged(t *testing.T, r *running, text string, n int) (lines string) {
	t.Helper()
	synctest.Wait()
	for line := range strings.Lines(r.logs.String()) {
		if strings.Contains(line, text) {
			lines += line
		}
	}
	if strings.Count(lines, "\n") != n {
		t.Fatalf("got %q, want %d lines with %s", lines, n, text)
	}
	return lines
}
