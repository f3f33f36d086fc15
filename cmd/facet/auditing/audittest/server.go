package audittest

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// Server serves a folder over HTTPS: as files, and under /api/audit/ as a cluster does, to requests
// that are signed.
type Server struct {
	URL string // of the files
	// CA is a file with the certificate. Profile is one for the cluster's way.
	CA, Profile string
	// Requests counts the requests. Gone names the paths that are past their retention.
	Requests atomic.Int64
	Gone     func(path string) bool
	dir      string
}

// Serve returns a server of a folder, which ends with the test.
func Serve(t testing.TB, dir string) *Server {
	t.Helper()
	s := &Server{dir: dir, Gone: func(string) bool { return false }}
	web := httptest.NewTLSServer(s)
	t.Cleanup(web.Close)
	s.URL = web.URL + "/files"
	own := t.TempDir()
	s.CA, s.Profile = filepath.Join(own, "ca.pem"), filepath.Join(own, "auditor.json")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	profile, err := json.Marshal(map[string]any{"base_urls": []string{web.URL}, "access_key": "k", "secret_key": "s", "ca": string(certificate)})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{s.CA: certificate, s.Profile: profile} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, cluster := strings.CutPrefix(r.URL.Path, "/api/audit/")
	if cluster && (!strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=k/") || r.Header.Get("X-Cloud-Date") == "") {
		http.Error(w, `{"error":{"errorType":"Forbidden"}}`, http.StatusForbidden)
		return
	}
	path = strings.TrimPrefix(path, "/files/")
	s.Requests.Add(1)
	if s.Gone(path) {
		http.Error(w, `{"error":{"errorType":"Gone"}}`, http.StatusGone)
		return
	}
	b, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(path)))
	if err != nil {
		http.Error(w, `{"error":{"errorType":"NotFound"}}`, http.StatusNotFound)
		return
	}
	_, _ = w.Write(b)
}
