package console

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"facet/internal/must"
	"facet/node/httpapi/openapi"
)

// sizeMax is the most bytes that all files of the console have compressed.
const sizeMax = 150_000

func (a Answer) header(name string) string {
	for _, h := range a.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

func TestFilesHaveTheirHeaders(t *testing.T) {
	t.Parallel()
	f := func(at string, status int, kind string) Answer {
		t.Helper()
		a := Load().Answer(Request{Path: at})
		if a.Status != status || a.header("Content-Type") != kind {
			t.Errorf("%s: got %d, %s, want %d, %s", at, a.Status, a.header("Content-Type"), status, kind)
		}
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(a.header("Content-Security-Policy"), part) {
				t.Errorf("%s: the policy lacks %s", at, part)
			}
		}
		if strings.Contains(a.header("Content-Security-Policy"), "unsafe") || a.header("X-Content-Type-Options") != "nosniff" ||
			a.header("Referrer-Policy") != "no-referrer" || a.header("Cross-Origin-Opener-Policy") != "same-origin" {
			t.Errorf("%s: headers are %v", at, a.Headers)
		}
		return a
	}
	if a, b := f("/console/", 200, types[".html"]), f("/console/index.html", 200, types[".html"]); !bytes.Equal(a.Body, b.Body) {
		t.Error("the folder is not its index.html")
	}
	f("/console/app.js", 200, types[".js"])
	f("/console/vendor/uplot.css", 200, types[".css"])
	f("/console/vendor/licences/preact.txt", 200, plainText)
	f("/docs/", 200, types[".html"])
	f("/docs/app.js", 200, types[".js"])
	if a := f("/docs", 308, plainText); a.header("Location") != "/docs/" {
		t.Errorf("/docs leads to %q", a.header("Location"))
	}
	if a := f("/console", 308, plainText); a.header("Location") != "/console/" {
		t.Errorf("/console leads to %q", a.header("Location"))
	}
	if a := f("/", 303, plainText); a.header("Location") != "/console/" {
		t.Errorf("/ leads to %q", a.header("Location"))
	}
	f("/openapi.json", 200, openapi.ContentType)
	for _, at := range []string{"/console/nothing", "/console/vendor/", "/console/../doc.go", "/console/vendor/preact.d.ts", "/console/%61pp.js", "/console//app.js", ""} {
		f(at, 404, plainText)
	}
}

func TestFileIsRevalidatedAndCompressed(t *testing.T) {
	t.Parallel()
	const at = "/console/app.js"
	plain := Load().Answer(Request{Path: at})
	for _, tag := range []string{plain.header("ETag"), `"x", ` + strings.TrimPrefix(plain.header("ETag"), "W/"), "*"} {
		if a := Load().Answer(Request{Path: at, IfNoneMatch: tag}); a.Status != http.StatusNotModified || a.Body != nil {
			t.Errorf("If-None-Match: %s: got %d with %d bytes", tag, a.Status, len(a.Body))
		}
	}
	for header, zipped := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "gzip; q=1.0": true, "": false, "br": false, "gzip;q=0": false, "gzip; q=0.000": false, "xgzip": false,
	} {
		a := Load().Answer(Request{Path: at, AcceptEncoding: header, IfNoneMatch: `"other"`})
		body := a.Body
		if got := a.header("Content-Encoding") == "gzip"; got != zipped {
			t.Errorf("Accept-Encoding: %q: compressed %v, want %v", header, got, zipped)
		}
		if zipped {
			r, err := gzip.NewReader(bytes.NewReader(body))
			must.Do(t, err)
			if body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		if a.Status != http.StatusOK || !bytes.Equal(body, plain.Body) {
			t.Errorf("Accept-Encoding: %q: got %d and other bytes", header, a.Status)
		}
	}
}

func TestConsoleStaysSmall(t *testing.T) {
	t.Parallel()
	total := map[string]int{}
	for name, f := range Load().files {
		folder, _, _ := strings.Cut(name[1:], "/")
		total["/"+folder] += min(len(f.plain), cmp.Or(len(f.zipped), len(f.plain)))
	}
	if got := total[Root]; got == 0 || got > sizeMax {
		t.Errorf("the console has %d bytes compressed, at most %d are wanted", got, sizeMax)
	}
	t.Logf("bytes compressed: %v", total)
}

// lock is vendor.json.
type lock struct {
	Packages []struct {
		Name, Version, Integrity string
		Files                    []struct{ To, SHA256 string }
	}
}

func TestVendoredFilesHaveTheirHashes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("vendor.json")
	must.Do(t, err)
	var l lock
	must.Do(t, json.Unmarshal(text, &l))
	var known []string
	for _, p := range l.Packages {
		if p.Version == "" || !strings.HasPrefix(p.Integrity, "sha512-") {
			t.Errorf("%s has no version or no hash of npm", p.Name)
		}
		licensed := false
		for _, f := range p.Files {
			b, err := embedded.ReadFile("web/vendor/" + f.To)
			if err != nil {
				t.Error(err)
			}
			sum := sha256.Sum256(b)
			if got := hex.EncodeToString(sum[:]); got != f.SHA256 {
				t.Errorf("%s has the hash %s, want %s: \"make console-vendor\" says what differs", f.To, got, f.SHA256)
			}
			licensed = licensed || strings.HasPrefix(f.To, "licences/")
			known = append(known, f.To)
		}
		if !licensed {
			t.Errorf("%s comes without its licence", p.Name)
		}
	}
	err = fs.WalkDir(embedded, "web/vendor", func(name string, d fs.DirEntry, err error) error {
		_, served := types[path.Ext(name)]
		if err == nil && served && !slices.Contains(known, strings.TrimPrefix(name, "web/vendor/")) {
			t.Errorf("%s is in no package of vendor.json", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// otherHost matches an address with a host.
var otherHost = regexp.MustCompile("://[A-Za-z0-9]")

// TestPagesNameNoOtherHost finds addresses in the pages, but for examples. A library names the page of its errors.
func TestPagesNameNoOtherHost(t *testing.T) {
	t.Parallel()
	for name, f := range Load().files {
		if strings.HasPrefix(name, Root+"/vendor/") || strings.HasPrefix(name, Root+"/client/") || name == DocumentPath {
			continue
		}
		text := strings.NewReplacer("http://www.w3.org/2000/svg", "", "https://host:port", "", "https://hr.example/", "").Replace(string(f.plain))
		if otherHost.MatchString(text) || strings.Contains(text, "innerHTML") || strings.Contains(text, "dangerouslySetInnerHTML") {
			t.Errorf("%s names another host, or makes markup of text", name)
		}
	}
}
