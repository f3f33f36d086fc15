package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"facet/cmd/facet/admin"
)

const (
	stateFormat = 1
	nodesMax    = 9
	stateBytes  = 1 << 20
)

// state is cluster.json, which a folder keeps between two runs.
type state struct {
	Format int         `json:"format"`
	Shards int         `json:"shards"`
	Nodes  []nodeState `json:"nodes"`
	Tenant *tenant     `json:"tenant,omitempty"` // nil until the cluster was ready once
}

// nodeState contains the addresses of a node, host:port.
type nodeState struct {
	Name   string `json:"name"`
	Peer   string `json:"peer"`
	Public string `json:"public"`
	Admin  string `json:"admin"`
}

type tenant struct {
	Name string `json:"name"`
	// ID is empty in a folder that an earlier version created.
	ID        string `json:"id,omitempty"`
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
}

// folder returns the paths of files in a cluster's folder.
type folder string

func (f folder) path(name string) string    { return filepath.Join(string(f), name) }
func (f folder) state() string              { return f.path("cluster.json") }
func (f folder) info() string               { return f.path("dev.json") }
func (f folder) curl() string               { return f.path("curl.conf") }
func (f folder) lock() string               { return f.path("dev.pid") }
func (f folder) certificates() string       { return f.path("certificates") }
func (f folder) bucket() string             { return f.path("bucket") }
func (f folder) data(node string) string    { return f.path(node) }
func (f folder) config(node string) string  { return f.path(node + ".yaml") }
func (f folder) log(node string) string     { return f.path(node + ".log") }
func (f folder) pidFile(node string) string { return filepath.Join(f.data(node), PIDFile) }

// PIDFile is the name of the pid file in a node's data directory.
const PIDFile = "node.pid"

// ErrNoCluster is returned when a folder has no cluster of `facet dev`.
var ErrNoCluster = errors.New("no cluster of facet dev in it")

// readState returns nil when the folder has no state yet: it is missing or empty.
func readState(f folder) (*state, error) {
	b, err := readBounded(f.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(mustBeEmpty(f), nil)
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster.json: %w", err)
	}
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read cluster.json: %w", err)
	}
	if s.Format != stateFormat || len(s.Nodes) < 1 || len(s.Nodes) > nodesMax {
		return nil, fmt.Errorf("cluster.json is of format %d with %d nodes, which this version can't use", s.Format, len(s.Nodes))
	}
	for i, n := range s.Nodes {
		if n.Name != nodeName(i) {
			return nil, fmt.Errorf("cluster.json calls a node %.40q", n.Name)
		}
	}
	return &s, nil
}

// mustBeEmpty keeps dev out of a folder with other people's files. A pid file
// belongs to dev.
func mustBeEmpty(f folder) error {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if f.path(e.Name()) != f.lock() {
			return fmt.Errorf("%s is not empty: %w", string(f), ErrNoCluster)
		}
	}
	return err
}

func (s *state) save(f folder) error { return writeJSON(f.state(), s) }

// nodeName returns n1 for 0.
func nodeName(i int) string { return "n" + strconv.Itoa(i+1) }

// writeJSON writes v by rename, readable by its owner only.
func writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(name), err)
	}
	next := name + ".new"
	if err := os.WriteFile(next, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(name), err)
	}
	return os.Rename(next, name)
}

func readBounded(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > stateBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", filepath.Base(name), stateBytes)
	}
	return os.ReadFile(name)
}

// Admin returns the admin ports of the cluster in dir and the certificate for them.
func Admin(dir string) (admin.Target, error) {
	f := folder(dir)
	s, err := readState(f)
	if err != nil {
		return admin.Target{}, err
	}
	if s == nil {
		return admin.Target{}, fmt.Errorf("%s: %w", dir, ErrNoCluster)
	}
	t := admin.Target{Certificates: filepath.Join(f.certificates(), "admin")}
	for _, n := range s.Nodes {
		t.Addresses = append(t.Addresses, n.Admin)
	}
	return t, nil
}
