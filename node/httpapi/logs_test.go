package httpapi

import (
	"strings"
	"testing"
)

// The details of a fault go to the log with the request's id, and nowhere else.
// Nothing that a client sends is logged.
func TestLogsHaveTheRequestIDAndNoSecrets(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	a := r.send(signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"ZmF1bHQ="}`})
	requestID := a.header.Get("X-Request-Id")
	if a.status != 500 || strings.Contains(a.body, "disk on fire") || !strings.Contains(a.body, requestID) {
		t.Errorf("answer %d %s", a.status, a.body)
	}
	b := r.send(signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"cGFuaWM="}`})
	r.exchange(line("GET / HTTP/1.1", "Host: a", "x-api-key: private key", "Authorization private signature", ""), "GET")
	r.exchange(line("GET / HTTP/1.1", "Host: a", "x-api-key: private\x00key", ""), "GET")
	r.send(signed{as: "biometric", method: "GET", target: "/v1.1/health"})
	logs := r.logs.String()
	for _, want := range []string{"disk on fire", "req=" + requestID, "req=" + b.header.Get("X-Request-Id"), "asked for"} {
		if !strings.Contains(logs, want) {
			t.Errorf("no %q in the logs:\n%s", want, logs)
		}
	}
	for _, secret := range []string{"private", "ZmF1bHQ", "secret of", "level=INFO"} {
		if strings.Contains(logs, secret) {
			t.Errorf("%q in the logs:\n%s", secret, logs)
		}
	}
}
