package keys

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"

	"facet/internal/id"
	"facet/node/cert"
	"facet/node/loop"
	"facet/node/peer"
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

// Replicas is the access to the replica of meta.
type Replicas interface {
	Meta() *metafsm.Machine
	MetaGroup() *raftfsm.Group
}

// Records brings the replica of meta up to date (routing.Router).
type Records interface {
	SyncMeta(ctx context.Context) error
}

// Peers asks other nodes.
type Peers interface {
	Ask(ctx context.Context, to id.Member, method string, q, a any) error
}

// Config names a node and the files of its keys.
type Config struct {
	Node         id.Node
	Self         id.Member
	Name         string
	Certificates string // a folder
	// The keys of Cluster wrap every data key. The keys of Gossip encrypt gossip.
	Cluster, Gossip Source
	Log             *slog.Logger
}

// Cluster has the parts of the node that a change of keys needs.
type Cluster struct {
	Replicas Replicas
	Records  Records
	Peers    Peers
	// Acted records what the cluster did, in its audit log.
	Acted func(router.Act)
}

// Keys has the certificates of a node and the keys that all nodes share. It is safe for
// concurrent use.
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

// Open reads the keys of a node. Call Join before the first change of a key.
func Open(ctx context.Context, c Config) (k *Keys, err error) {
	k = &Keys{Loop: loop.New("keys"), cfg: c}
	if k.cluster, err = openRing(ctx, c.Cluster); err != nil {
		return nil, err
	}
	secrets := k.cluster.secrets()
	if k.master, err = seal.NewMaster(secrets[0], secrets[1:]...); err != nil {
		return nil, err
	}
	k.cluster.apply = k.master.Change
	if k.gossip, err = openRing(ctx, c.Gossip); err != nil {
		return nil, err
	}
	if k.node, err = k.certificate("node"); err != nil {
		return nil, err
	}
	k.server, err = k.certificate("server")
	return k, err
}

// path returns the path of a file in the certificates' folder.
func (k *Keys) path(file string) string { return filepath.Join(k.cfg.Certificates, file) }

// certificate loads a certificate and its key.
func (k *Keys) certificate(name string) (*cert.Source, error) {
	return cert.Load(cert.Files{CA: k.path("ca.pem"), Cert: k.path(name + ".pem"), Key: k.path(name + ".key")}, k.cfg.Log)
}

// Join connects the keys to the node's other parts. apply changes the keys of gossip.
func (k *Keys) Join(c Cluster, apply func(secrets [][]byte) error) {
	k.in, k.gossip.apply = c, apply
}

// Methods returns the handlers of the requests that Keys answers to other nodes.
func (k *Keys) Methods() map[string]peer.Handler {
	return map[string]peer.Handler{
		methodRing:   peer.Answers(k.takeStep),
		methodRotate: peer.Answers(peer.Faults(k.rotate)),
		methodCerts:  peer.Answers(peer.Faults(k.certificates)),
	}
}

// Master returns the cluster's key.
func (k *Keys) Master() *seal.Master { return k.master }

// Node returns the certificate of the ports for nodes and for operators.
func (k *Keys) Node() *cert.Source { return k.node }

// Server returns the certificate of the port for clients.
func (k *Keys) Server() *cert.Source { return k.server }

// GossipSecrets returns the keys that encrypt gossip, the one in use first.
func (k *Keys) GossipSecrets() [][]byte { return k.gossip.secrets() }

// Shared returns the keys of each ring, by the ring's name, the one in use first.
func (k *Keys) Shared() map[string][]wire.KeyInfo {
	return map[string][]wire.KeyInfo{wire.RingCluster: k.cluster.infos(), wire.RingGossip: k.gossip.infos()}
}

// named returns the ring of that name.
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
