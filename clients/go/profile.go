package client

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"path/filepath"
)

// profile is the content of a profile. The dev.json of facet dev is one.
type profile struct {
	BaseURLs   []string `json:"base_urls"`
	PortalURLs []string `json:"portal_urls"`
	CA         string   `json:"ca"` // PEM
	CAFile     string   `json:"ca_file"`
	AccessKey  string   `json:"access_key"`
	SecretKey  string   `json:"secret_key"`
	APIKey     string   `json:"api_key"`
	Region     string   `json:"region"`
	Service    string   `json:"service"`
}

// ReadProfile reads a profile, a JSON file that names a cluster and the keys of a tenant. Only
// base_urls and access_key are needed, and New needs the secret key. A ca_file that is no
// absolute path starts at the profile's own folder. Other members are ignored.
func ReadProfile(file string) (Config, error) {
	text, err := readFile(file)
	if err != nil {
		return Config{}, err
	}
	var p profile
	if err := json.Unmarshal(text, &p); err != nil {
		return Config{}, fmt.Errorf("read the profile %s: %w", file, err)
	}
	if len(p.BaseURLs) == 0 || p.AccessKey == "" {
		return Config{}, fmt.Errorf("read the profile %s: it has no base_urls or no access_key", file)
	}
	if p.CAFile != "" && !filepath.IsAbs(p.CAFile) {
		p.CAFile = filepath.Join(filepath.Dir(file), p.CAFile)
	}
	cfg := Config{
		BaseURLs: p.BaseURLs, PortalURLs: p.PortalURLs, CAFile: p.CAFile, APIKey: p.APIKey,
		AccessKey: p.AccessKey, SecretKey: p.SecretKey, Region: p.Region, Service: p.Service,
	}
	if p.CA != "" {
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		if !cfg.TLS.RootCAs.AppendCertsFromPEM([]byte(p.CA)) {
			return Config{}, fmt.Errorf("read the profile %s: ca has no certificate", file)
		}
	}
	return cfg, nil
}

// FromProfile returns a client of the cluster and the tenant that a profile names.
func FromProfile(file string) (*Client, error) {
	cfg, err := ReadProfile(file)
	if err != nil {
		return nil, err
	}
	return New(cfg)
}

// FromDev is FromProfile of the dev.json of facet dev. The client has no API key yet: see
// Client.CreateGallery and WithAPIKey.
func FromDev(file string) (*Client, error) { return FromProfile(file) }
