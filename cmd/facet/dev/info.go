package dev

import (
	"encoding/json"
	"fmt"
	"os"

	"facet/internal/id"
)

// Info is the content of dev.json: everything that a client of the cluster needs.
// URLs have no slash at their end, paths are absolute.
type Info struct {
	BaseURLs   []string `json:"base_urls"`
	PortalURLs []string `json:"portal_urls"`
	CAFile     string   `json:"ca_file"`
	AccessKey  string   `json:"access_key"`
	SecretKey  string   `json:"secret_key"`
	Region     string   `json:"region"`
	Service    string   `json:"service"`
	// BucketDir is the tenant's folder in the object store of bulk registrations.
	BucketDir string     `json:"bucket_dir,omitempty"`
	Nodes     []NodeInfo `json:"nodes"`
}

// NodeInfo is one node process. PID is the running process, or the last one when
// the node is dead.
type NodeInfo struct {
	ID  id.Node `json:"id"`
	PID int     `json:"pid"`
	URL string  `json:"url"`
	Dir string  `json:"dir"`
	// Cmd is the argument list that starts this node again.
	Cmd []string `json:"cmd"`

	Name  string `json:"name"`
	Admin string `json:"admin"` // host:port of the admin port
	Log   string `json:"log"`
}

// ReadInfo reads the dev.json of the running cluster in dir.
func ReadInfo(dir string) (Info, error) {
	var i Info
	b, err := readBounded(folder(dir).info())
	if err != nil {
		return i, fmt.Errorf("no cluster serves in %s: %w", dir, err)
	}
	if err := json.Unmarshal(b, &i); err != nil {
		return i, fmt.Errorf("read dev.json: %w", err)
	}
	return i, nil
}

// dropInfo removes a dev.json, which may have been left by a crash.
func dropInfo(f folder) error {
	if err := os.Remove(f.info()); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove dev.json: %w", err)
	}
	return nil
}
