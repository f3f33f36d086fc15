package client_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"facet.internal/client"
)

// recordedPurposes returns the sorted purposes of this test's requests of an operation in the audit log, once there are so
// many.
func recordedPurposes(t *testing.T, c *client.Client, operation string, want int) (purposes []string) {
	t.Helper()
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		purposes = nil
		page, err := c.AuditRecords(t.Context(), client.AuditQuery{Operation: operation, Kind: "request", Length: 200})
		must(t, err)
		for _, r := range page.Records {
			if strings.HasPrefix(r.Purpose, t.Name()) {
				purposes = append(purposes, r.Purpose)
			}
		}
		if len(purposes) >= want || time.Now().After(late) {
			slices.Sort(purposes)
			return purposes
		}
	}
}

// The server folds blanks when it verifies a signature, and keeps them in the record.
func TestPurposeIsRecorded(t *testing.T) {
	cfg, err := client.ReadProfile("dev/dev.json")
	must(t, err)
	general, special := t.Name()+": entry of  staff", t.Name()+" ~case 4711, "+strings.Repeat("x", 256-len(t.Name())-13)
	cfg.Purpose = general
	c, err := client.New(cfg)
	must(t, err)
	defer c.Close()
	ctx := client.WithPurpose(t.Context(), special)
	for _, ctx := range []context.Context{t.Context(), ctx, client.WithPurpose(ctx, "")} {
		_, err := c.Galleries(ctx)
		must(t, err)
	}
	f := forwarded(t, "GET", "/api/galleries", "")
	_, err = c.Forward(t.Context(), f)
	must(t, err)
	f.Purpose = special
	_, err = c.Forward(t.Context(), f)
	must(t, err)
	if got, want := recordedPurposes(t, c, "GET /api/galleries", 4), []string{special, special, general, general}; !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestPurposeOfNoHeaderIsRefused(t *testing.T) {
	t.Parallel()
	s, c := play(t, client.Config{}, say(200, `{"galleries":[]}`))
	for purpose, want := range map[string]string{
		strings.Repeat("x", 257): "257 bytes", "entry\nX-Api-Key: k": `'\n'`, "a\tb": `'\t'`, "\x7f": `'\x7f'`, "Prüfung": "'ü'",
	} {
		if _, err := c.Galleries(client.WithPurpose(t.Context(), purpose)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", purpose, err, want)
		}
		_, err := client.New(client.Config{BaseURLs: []string{"https://n1"}, AccessKey: "a", SecretKey: "s", Purpose: purpose})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("new client, %q: got %v, want %s", purpose, err, want)
		}
	}
	if n := len(s.requests()); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}
