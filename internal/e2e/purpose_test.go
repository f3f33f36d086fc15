package e2e

import (
	"slices"
	"strings"
	"testing"
)

// Commands state their --purpose in a signed header. That of a gallery is another one.
func TestCommandsStateTheirPurpose(t *testing.T) {
	t.Parallel()
	s := newTenant(t, shared(t), "commands-purpose")
	s.wide = true // records
	c := shared(t)
	s.run(0, "", "tenant", "set", "commands-purpose", "--audit", "strict", "--dir", c.dir)
	s.run(0, "", "gallery", "create", "staff", "--purpose", "entry of staff")
	s.run(0, "", "enrol", photoPath(obama), "--purpose", "contract 12")
	s.run(0, "", "search", photoPath(anotherObama), "--purpose", "case 4711")
	s.run(0, "", "erase", "--photo", photoPath(anotherObama), "--yes", "--tenant", s.profile, "--purpose", "letter of 3 May", "--dir", c.dir)
	s.run(1, "the purpose has 257 bytes: shorten it to 256", "search", photoPath(anotherObama), "--purpose", strings.Repeat("x", 257))
	s.run(1, "the purpose has the character 'ü'", "tag", "list", "--purpose", "Prüfung")
	s.run(2, "--purpose is for a tenant's log", "audit", "search", "--cluster", "--purpose", "audit 7", "--dir", c.dir)
	s.run(0, "", "audit", "search", "--purpose", "audit 7")
	var got []string
	for _, r := range records(t, s.run(0, "", "audit", "search", "--json")) {
		if r.Kind == "request" {
			got = append(got, r.Operation+" "+r.Purpose)
		}
	}
	for _, want := range []string{
		"POST /api/galleries ", "POST /v1.1/subjects contract 12", "POST /v1.1/face/search case 4711", "DELETE /v1.1/subjects/{subjectId} letter of 3 May",
		"GET /api/audit audit 7",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("the log has no %q: %q", want, got)
		}
	}
}
