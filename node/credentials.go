package node

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/cert"
	"facet/node/transport"
	"facet/raftfsm/metafsm"
	"facet/router"
)

const (
	// certificateSoon is how long before a certificate's end Status warns.
	certificateSoon = 30 * 24 * time.Hour
	// pendingFor is how long keys of a request wait for their certificates.
	pendingFor = 10 * time.Minute
)

// pendingKeys are keys of certificates that were requested and did not come yet: in
// memory only, the next request replaces them.
type pendingKeys struct {
	mu                   sync.Mutex
	node, server, status []byte
	made                 time.Time
}

// credentials tells what this node and others trust each other by.
func (n *Node) credentials() *Credentials {
	leaf := n.nodeCert.Leaf()
	c := &Credentials{
		NodeEnds: leaf.NotAfter, ServerEnds: n.serverCert.Leaf().NotAfter, AuthorityEnds: n.nodeCert.AuthorityEnd(),
		Gossip: n.rings.gossip.infos(), Cluster: n.rings.cluster.infos(),
	}
	if leaf, err := n.statusLeaf(); err == nil {
		c.StatusEnds = leaf.NotAfter
	}
	for _, authority := range n.nodeCert.Authorities() {
		c.Trusted = append(c.Trusted, cert.Fingerprint(authority))
		if leaf.CheckSignatureFrom(authority) == nil {
			c.Issuer = cert.Fingerprint(authority)
		}
	}
	return c
}

// statusLeaf reads the certificate by which commands on this machine look at the cluster. The
// node itself has no use for it.
func (n *Node) statusLeaf() (*x509.Certificate, error) {
	in := func(file string) string { return filepath.Join(n.cfg.Certificates, file) }
	p, err := cert.LoadPair(in("status.pem"), in("status.key"))
	if err != nil {
		return nil, err
	}
	return cert.ParseLeaf(p.Cert)
}

// credentialWarnings says in words what ends soon and what was left half done.
func credentialWarnings(s Status) []string {
	var list []string
	var first *Credentials
	differ := map[string]bool{}
	for _, m := range s.Nodes {
		c := m.Credentials
		if c == nil {
			continue
		}
		for _, e := range c.endings() {
			if now := time.Now(); e.soon(now) {
				list = append(list, fmt.Sprintf("node %s (%s): %s", m.Name, m.ID, e.in(now)))
			}
		}
		if first == nil {
			first = c
		}
		differ["a rotation of the gossip key"] = differ["a rotation of the gossip key"] || len(c.Gossip) > 1 || !sameRing(c.Gossip, first.Gossip)
		differ["a rotation of the cluster key"] = differ["a rotation of the cluster key"] || len(c.Cluster) > 1 || !sameRing(c.Cluster, first.Cluster)
		differ["a rotation of the authority"] = differ["a rotation of the authority"] || len(c.Trusted) > 1 || !slices.Equal(c.Trusted, first.Trusted)
	}
	for _, what := range []string{"gossip key", "cluster key", "authority"} {
		if differ["a rotation of the "+what] {
			list = append(list, fmt.Sprintf("a rotation of the %s is not over: facet cluster status shows how far it is", what))
		}
	}
	return list
}

// Certificates has a node request new certificates, or gives them to it.
func (n *Node) Certificates(ctx context.Context, o CertificateOrder) (a CertificateAnswer, err error) {
	if o.Node == n.id {
		return n.certificates(o)
	}
	i := slices.IndexFunc(n.groups.metaState.Nodes(), func(r metafsm.Node) bool { return r.ID == o.Node && r.State != metafsm.NodeRemoved })
	if i < 0 {
		return a, router.Errorf(router.NotFound, "", "there is no node %s", o.Node)
	}
	body, err := json.Marshal(o)
	if err != nil {
		return a, fmt.Errorf("order certificates: %w", err)
	}
	member := n.groups.metaState.Nodes()[i].Member
	answer, err := n.peers.Call(ctx, member, methodCerts, body)
	if errors.Is(err, transport.ErrOutcomeUnknown) && len(o.Certificate) == 0 {
		// At the end of a rotation the order itself has the connection cut that it came by.
		answer, err = n.peers.Call(ctx, member, methodCerts, body)
	}
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(answer, &a)
}

// serveCertificates answers Certificates.
func (n *Node) serveCertificates(body []byte) ([]byte, error) {
	var o CertificateOrder
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("read an order about certificates: %w", err)
	}
	a, err := n.certificates(o)
	if err != nil {
		return nil, peerFault{err}
	}
	return json.Marshal(a)
}

func (n *Node) certificates(o CertificateOrder) (a CertificateAnswer, err error) {
	p := &n.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(o.Authorities) == 0 && len(o.Certificate) == 0 {
		return n.requestCertificates(p)
	}
	trusted, err := n.trustedAfter(o)
	if err != nil {
		return a, router.Errorf(router.InvalidRequest, "", "%v", err)
	}
	in := func(file string) string { return filepath.Join(n.cfg.Certificates, file) }
	if len(o.Certificate) > 0 {
		if time.Since(p.made) > pendingFor {
			return a, router.Errorf(router.InvalidRequest, "", "this node did not request certificates lately")
		}
		if err := n.checkOwn(o, p, trusted); err != nil {
			return a, router.Errorf(router.InvalidRequest, "", "%v", err)
		}
	}
	// What is trusted comes first: a certificate of an authority that this node does
	// not trust itself would be of no use.
	if len(o.Authorities) > 0 {
		err = writeSynced(in("ca.pem"), o.Authorities)
	}
	if err == nil && len(o.Certificate) > 0 {
		err = errors.Join(
			cert.Pair{Cert: o.Certificate, Key: p.node}.Save(in("node.pem"), in("node.key")),
			cert.Pair{Cert: o.Server, Key: p.server}.Save(in("server.pem"), in("server.key")))
		if err == nil && len(o.Status) > 0 {
			err = cert.Pair{Cert: o.Status, Key: p.status}.Save(in("status.pem"), in("status.key"))
		}
		p.made = time.Time{}
	}
	if err != nil {
		return a, router.Errorf(router.InvalidRequest, "", "the certificates' folder of this node can't be changed: %v", err)
	}
	n.nodeCert.Reload()
	n.serverCert.Reload()
	n.log.Info("certificates were replaced", "authorities", len(o.Authorities) > 0, "own", len(o.Certificate) > 0)
	return a, nil
}

// checkOwn tells whether the certificates of an order are this node's, for the keys that
// it has made.
func (n *Node) checkOwn(o CertificateOrder, p *pendingKeys, trusted []*x509.Certificate) error {
	leaf, err := cert.Check(cert.Pair{Cert: o.Certificate, Key: p.node}, trusted, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return fmt.Errorf("the node's certificate: %w", err)
	}
	if who, err := cert.NodeIn(leaf); err != nil || who != n.id {
		return errors.New("the node's certificate names another node")
	}
	if _, err := cert.Check(cert.Pair{Cert: o.Server, Key: p.server}, trusted, x509.ExtKeyUsageServerAuth); err != nil {
		return fmt.Errorf("the certificate for clients: %w", err)
	}
	if len(o.Status) == 0 {
		return nil
	}
	if leaf, err = cert.Check(cert.Pair{Cert: o.Status, Key: p.status}, trusted, x509.ExtKeyUsageClientAuth); err != nil {
		return fmt.Errorf("the certificate for facet status: %w", err)
	}
	if who, err := cert.StatusIn(leaf); err != nil || who != n.id {
		return errors.New("the certificate for facet status names another node, or another role")
	}
	return nil
}

// trustedAfter gives the authorities that this node trusts after an order. The own
// certificate must stay good.
func (n *Node) trustedAfter(o CertificateOrder) ([]*x509.Certificate, error) {
	if len(o.Authorities) == 0 {
		return n.nodeCert.Authorities(), nil
	}
	list, err := cert.ParseAuthorities(o.Authorities)
	if err != nil {
		return nil, fmt.Errorf("the authorities: %w", err)
	}
	have := n.nodeCert.Authorities()
	if !slices.ContainsFunc(list, func(c *x509.Certificate) bool {
		return slices.ContainsFunc(have, c.Equal) && c.Subject.CommonName == have[0].Subject.CommonName
	}) {
		return nil, errors.New("none of the authorities is trusted now: one has to take over from the other")
	}
	leaf := n.nodeCert.Leaf()
	if len(o.Certificate) == 0 && !slices.ContainsFunc(list, func(c *x509.Certificate) bool { return leaf.CheckSignatureFrom(c) == nil }) {
		return nil, errors.New("none of the authorities has issued this node's certificate: renew it first")
	}
	return list, nil
}

// requestCertificates makes keys and their requests.
func (n *Node) requestCertificates(p *pendingKeys) (a CertificateAnswer, err error) {
	var errs [3]error
	a.Request, p.node, errs[0] = cert.Request()
	a.ServerRequest, p.server, errs[1] = cert.Request()
	a.StatusRequest, p.status, errs[2] = cert.Request()
	if err := errors.Join(errs[:]...); err != nil {
		return a, err
	}
	if err := writable(n.cfg.Certificates); err != nil {
		return a, router.Errorf(router.InvalidRequest, "", "the certificates' folder of this node can't be changed: %v", err)
	}
	p.made = time.Now()
	a.Hosts = cert.Hosts(n.serverCert.Leaf())
	return a, nil
}

// writable tells whether files can be put into a folder, before anybody relies on it.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// names gives the names of nodes by their ids.
func (n *Node) names() map[id.Node]string {
	names := map[id.Node]string{}
	for _, r := range n.groups.metaState.Nodes() {
		names[r.ID] = r.Name
	}
	return names
}
