package client_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet.internal/client"
)

// A profile has the authority itself, or names its file from its own folder.
func TestProfileNamesClusterAndKeys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "profile.json")
	f := func(text, want string) client.Config {
		t.Helper()
		must(t, os.WriteFile(file, []byte(text), 0o600))
		cfg, err := client.ReadProfile(file)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
		return cfg
	}
	f(`admin: [n1:7422]`, "read the profile")
	f(`{"access_key":"a"}`, "no base_urls")
	f(`{"base_urls":["https://n1"]}`, "no access_key")
	f(`{"base_urls":["https://n1"],"access_key":"a","ca":"none"}`, "no certificate")
	cfg := f(`{"base_urls":["https://n1"],"access_key":"a","api_key":"k","ca_file":"ca.pem","more":1}`, "")
	if cfg.CAFile != filepath.Join(filepath.Dir(file), "ca.pem") || cfg.AccessKey != "a" || cfg.APIKey != "k" || cfg.SecretKey != "" {
		t.Errorf("got %+v", cfg)
	}
	ca := httptest.NewTLSServer(nil)
	defer ca.Close()
	pemText, _ := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate().Raw})))
	cfg = f(`{"base_urls":["https://n1"],"access_key":"a","secret_key":"s","ca":`+string(pemText)+`}`, "")
	if cfg.TLS == nil || !cfg.TLS.RootCAs.Equal(ca.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs) {
		t.Error("ca is not the authority")
	}
}
