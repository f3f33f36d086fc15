package keys

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"

	"facet/internal/id"
	"facet/node/cert"
	"facet/node/loop"
	"facet/node/wire"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/shard/seal"
)

// Requests of other nodes that Keys answers.
const (
	methodRing   = "node.ring"
	methodRotate = "node.rotate"
	methodCerts  = "node.certificates"
)

// Replicas are the groups that live on this node.
type Replicas interface {
	Meta() *metafsm.Machine
	MetaGroup() *raftfsm.Group
}

// Records brings the replica of meta up to date (router.Router).
type Records interface {
	SyncMeta(ctx context.Context) error
}

// Peers asks other nodes.
type Peers interface {
	Ask(ctx context.Context, to id.Member, method string, q, a any) error
}

// Config says where the keys of a node are.
type Config struct {
	Node id.Node
	Self id.Member
	Name string
	// Certificates is the folder of the certificates.
	Certificates string
	// ClusterKeyFile has the keys that wrap every data key, GossipKeyFile those that
	// encrypt gossip.
	ClusterKeyFile, GossipKeyFile string
	Log                           *slog.Logger
}

// Cluster is what changes of keys need of the node.
type Cluster struct {
	Replicas Replicas
	Records  Records
	Peers    Peers
}

// Keys are what a node and others trust each other by: its certificates and the keys that
// all nodes share. Its methods are safe for concurrent use.
type Keys struct {
	*loop.Loop
	cfg Config
	in  Cluster

	master          *seal.Master
	gossip, cluster *ring
	node, server    *cert.Source
	rotating        sync.Mutex // held on meta's leader while it replaces a key
	pending         pendingKeys
}

// Open reads the keys of a node. Join comes before any change of them.
func Open(c Config) (k *Keys, err error) {
	k = &Keys{Loop: loop.New("keys"), cfg: c}
	if k.cluster, err = openRing(c.ClusterKeyFile); err != nil {
		return nil, err
	}
	secrets := k.cluster.secrets()
	if k.master, err = seal.NewMaster(secrets[0], secrets[1:]...); err != nil {
		return nil, err
	}
	k.cluster.apply = k.master.Change
	if k.gossip, err = openRing(c.GossipKeyFile); err != nil {
		return nil, err
	}
	if k.node, err = k.certificate("node"); err != nil {
		return nil, err
	}
	k.server, err = k.certificate("server")
	return k, err
}

// certificate loads a pair of the certificate folder.
func (k *Keys) certificate(name string) (*cert.Source, error) {
	in := func(file string) string { return filepath.Join(k.cfg.Certificates, file) }
	return cert.Load(cert.Files{CA: in("ca.pem"), Cert: in(name + ".pem"), Key: in(name + ".key")}, k.cfg.Log)
}

// Join sets what changes of keys need; apply has gossip use other keys.
func (k *Keys) Join(c Cluster, apply func(secrets [][]byte) error) {
	k.in, k.gossip.apply = c, apply
}

// Methods are the requests of other nodes that the keys answer.
func (k *Keys) Methods() map[string]func(context.Context, []byte) ([]byte, error) {
	return map[string]func(context.Context, []byte) ([]byte, error){
		methodRing:   k.serveRing,
		methodRotate: k.serveRotate,
		methodCerts:  k.serveCertificates,
	}
}

// Master returns the cluster's key.
func (k *Keys) Master() *seal.Master { return k.master }

// Node returns the certificate of the ports for nodes and operators, Server the one for
// clients.
func (k *Keys) Node() *cert.Source { return k.node }

// Server returns the certificate for clients.
func (k *Keys) Server() *cert.Source { return k.server }

// GossipSecrets returns the keys that encrypt gossip, the one in use first.
func (k *Keys) GossipSecrets() [][]byte { return k.gossip.secrets() }

func (k *Keys) named(name string) (*ring, error) {
	switch name {
	case wire.RingGossip:
		return k.gossip, nil
	case wire.RingCluster:
		return k.cluster, nil
	default:
		return nil, router.Errorf(router.InvalidRequest, "", "a ring is %s or %s", wire.RingGossip, wire.RingCluster)
	}
}
