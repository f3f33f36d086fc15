package dev

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"facet/cmd/facet/authority"
	"facet/cmd/facet/config"
	"facet/internal/id"
	"facet/node/datadir"
)

const (
	authorityName = "facet-dev"
	replicas      = 3
	logBytesMax   = 8 << 20 // a longer log is moved aside when its node starts
)

// identities returns every node's id. A node gets its id with its data directory.
func identities(f folder, s *state) (map[string]id.Node, error) {
	ids := map[string]id.Node{}
	for _, n := range s.Nodes {
		who, err := datadir.Identify(f.data(n.Name))
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		ids[n.Name] = who
	}
	return ids, nil
}

// ensureCertificates creates or renews the authority's and all nodes' certificates.
func ensureCertificates(f folder, ids map[string]id.Node) (*authority.Folder, error) {
	a, err := authority.OpenPlain(f.certificates(), authorityName)
	if err != nil {
		return nil, err
	}
	for name, who := range ids {
		_, err := a.Ensure(authority.NodeCertificates{Name: name, ID: who, Hosts: []string{loopback, "::1", "localhost"}})
		if err != nil {
			return nil, fmt.Errorf("certificates of %s: %w", name, err)
		}
	}
	return a, nil
}

// writeConfigs writes each node's configuration file, so that the command that
// starts it is short.
func writeConfigs(f folder, s *state, a *authority.Folder, assets config.Assets) error {
	var seeds []string
	for _, n := range s.Nodes {
		seeds = append(seeds, n.Peer)
	}
	for _, n := range s.Nodes {
		values := map[string]any{
			"name": n.Name, "dir": f.data(n.Name),
			"peer-address": n.Peer, "public-address": n.Public, "admin-address": n.Admin,
			"seeds": seeds, "bootstrap-expect": len(s.Nodes),
			"shards": s.Shards, "replicas": replicas,
			"certificates": a.Node(n.Name), "cluster-key": a.ClusterKey(), "gossip-key": a.GossipKey(),
			"bucket": (&url.URL{Scheme: "file", Path: f.bucket()}).String(),
			"models": assets.Models, "onnxruntime": assets.ONNXRuntime,
			"log-format": string(config.LogText),
		}
		if assets.SHA256 != "" {
			values["onnxruntime-sha256"] = assets.SHA256
		}
		if err := config.Write(f.config(n.Name), values); err != nil {
			return err
		}
	}
	return nil
}

// openLog opens a node's log to append to. It moves a log that is too long aside;
// one such log is kept.
func openLog(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && info.Size() > logBytesMax {
		if err := os.Rename(name, name+".1"); err != nil {
			return nil, fmt.Errorf("move log aside: %w", err)
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", filepath.Base(name), err)
	}
	return f, nil
}

// tail returns the last lines of a log, at most 1 KiB of it.
func tail(name string) string {
	const most = 1 << 10
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, min(info.Size(), most))
	if _, err := f.ReadAt(b, info.Size()-int64(len(b))); err != nil {
		return ""
	}
	return string(b)
}
