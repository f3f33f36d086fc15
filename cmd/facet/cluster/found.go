package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/authority"
	"facet/node/datadir"
)

const (
	// ClusterName is the default name of a cluster in its certificates.
	ClusterName = "facet"
	// anywhere is an address for documentation (RFC 5737). The route to it shows
	// the address under which this machine reaches others.
	anywhere = "192.0.2.1:9"
)

// Shape contains the decisions for founding a cluster.
type Shape struct {
	Name             string // in its certificates
	Shards, Replicas int
	// Authority is created unless it exists. Without a folder it lies beside the node's.
	Authority authority.Access
}

// Made describes a node that was created.
type Made struct {
	// Config is the file for facet serve, Profile the one for other commands.
	Config, Profile string
	// Authority is the folder with the authority, if there is one.
	Authority string
	Name, URL string
}

// Init creates the first node of a cluster: an authority, keys, certificates and
// settings. The start of the node founds the cluster. Others then join it.
func Init(ctx context.Context, m Machine, s Shape) (Made, error) {
	m, f, err := m.complete()
	if err != nil {
		return Made{}, err
	}
	if _, err := m.check(ctx, anywhere); err != nil {
		return Made{}, err
	}
	s.Authority.Dir = cmp.Or(s.Authority.Dir, authority.Beside(string(f)))
	s.Authority.Admin = f.admin()
	a, err := s.Authority.OpenOrCreate(ctx, s.Name)
	if err != nil {
		return Made{}, err
	}
	if err := os.MkdirAll(f.keys(), 0o700); err != nil {
		return Made{}, fmt.Errorf("make the folder of the keys: %w", err)
	}
	_, err1 := authority.EnsureKey(f.clusterKey())
	_, err2 := authority.EnsureKey(f.gossipKey())
	if err := errors.Join(err1, err2); err != nil {
		return Made{}, err
	}
	who, err := datadir.Identify(f.data())
	if err != nil {
		return Made{}, err
	}
	if _, err := a.EnsureIn(f.certificates(), authority.NodeCertificates{ID: who, Hosts: m.hosts()}); err != nil {
		return Made{}, err
	}
	err = m.write(f, map[string]any{"bootstrap-expect": 1, "shards": s.Shards, "replicas": s.Replicas},
		admin.Profile{Admin: []string{m.admin()}, Certificates: a.Admin()})
	return m.made(f, s.Authority.Dir), err
}
