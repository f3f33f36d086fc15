package settings

import (
	"strings"
	"testing"
)

func TestPhotoLinkNamesSafePlace(t *testing.T) {
	t.Parallel()
	f := func(link, want string) {
		t.Helper()
		got := photoLinkFault(link)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", link, got, want)
		}
	}
	for _, good := range []string{
		"https://hr.example/photos/{externalId}.jpg", "https://hr.example:8443/p?id={externalId}&again={externalId}",
		"https://[2001:db8::1]/#{externalId}", "https://hr.example/a%20b/{externalId}", "HTTPS://hr.example/{externalId}",
		"http://localhost:8080/{externalId}", "http://127.0.0.2/{externalId}", "http://[::1]:80/{externalId}",
	} {
		f(good, "")
	}
	f("https://hr.example/", "contain {externalId}")
	f("https://hr.example/{externalID}", "contain {externalId}")
	f("https://hr.example/{externalId}/{name}", "percent-encoded")
	f("https://hr.example/ {externalId}", "percent-encoded")
	f("https://hr.example/\n{externalId}", "percent-encoded")
	f(`https://hr.example/"{externalId}`, "percent-encoded")
	f(`https:\\hr.example/{externalId}`, "percent-encoded")
	f("https://hr.example/ü/{externalId}", "percent-encoded")
	f("https://{externalId}/x", "host")
	f("https://{externalId}.hr.example/x", "host")
	f("https://hr.example{externalId}", "host")
	f("https://hr.example?{externalId}", "host")
	f("{externalId}://hr.example/x", "host")
	f("https:{externalId}", "host")
	f("https:///{externalId}", "host")
	f("/photos/{externalId}", "host")
	f("https://hr.example/%zz{externalId}", "host")
	f("javascript:alert(1)//{externalId}", "host")
	f("https://me@hr.example/{externalId}", "name or password")
	f("https://a:b@hr.example/{externalId}", "name or password")
	f("http://hr.example/{externalId}", "an https URL")
	f("http://localhost.hr.example/{externalId}", "an https URL")
	f("http://10.0.0.1/{externalId}", "an https URL")
	f("ftp://hr.example/{externalId}", "an https URL")
	f("javascript://hr.example/%0Aalert(1)//{externalId}", "an https URL")
	f("data://hr.example/{externalId}", "an https URL")
}
