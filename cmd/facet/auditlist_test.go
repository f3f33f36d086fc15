package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"facet.internal/client"

	"facet/internal/must"
)

func TestAuditTableShowsWhatOrdersWereAbout(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 22, 40, 12, 0, time.UTC)
	list := []client.AuditRecord{
		{Number: 4711, Time: at, Kind: "request", Status: 403, Holder: "door 3", Source: "2001:db8:85a3:8d3:1319:8a2e:370:7348", Operation: "GET /v1.1/subjects/{subjectId}/events", Reason: "Network", Purpose: strings.Repeat("entry ", 42)},
		{Number: 4712, Time: at, Kind: "command", Holder: "admin", Source: "127.0.0.1", Operation: "set tenant", Reason: "galleries, audit strict"},
		{Number: 4713, Time: at, Kind: "completed", Holder: strings.Repeat("a long name of a holder ", 5), Operation: "POST /v1.1/face/search"},
	}
	var b strings.Builder
	a := auditQuery{json: new(bool)}
	must.Do(t, a.print(&b, list, true))
	for _, want := range []string{
		"NUMBER  TIME  ", "4711    2026-11-27 22:40:12Z  request    403     door 3 ", "\n        about: Network\n        purpose: entry entry ", "set tenant\n        about: galleries, audit strict\n4713 ",
		"2001:db…70:7348  GET /v1.1/s…Id}/events\n", "a lon…der ", "  POST /v1.1/face/search\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log("\n" + b.String())
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	b.Reset()
	if err := a.print(&b, nil, false); err != nil || b.Len() > 0 {
		t.Errorf("no records and no head: %q, %v", b.String(), err)
	}
}
