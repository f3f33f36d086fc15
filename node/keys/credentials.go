package keys

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

	"facet/node/cert"
	"facet/node/datadir"
	"facet/node/peer"
	"facet/node/transport"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
)

const (
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

// Credentials returns the certificates and shared keys that this node uses now.
func (k *Keys) Credentials() *wire.Credentials {
	leaf := k.node.Leaf()
	c := &wire.Credentials{
		NodeEnds: leaf.NotAfter, ServerEnds: k.server.Leaf().NotAfter, AuthorityEnds: k.node.AuthorityEnd(),
		Gossip: k.gossip.infos(), Cluster: k.cluster.infos(),
	}
	if leaf, err := k.statusLeaf(); err == nil {
		c.StatusEnds = leaf.NotAfter
	}
	for _, authority := range k.node.Authorities() {
		c.Trusted = append(c.Trusted, cert.Fingerprint(authority))
		if leaf.CheckSignatureFrom(authority) == nil {
			c.Issuer = cert.Fingerprint(authority)
		}
	}
	return c
}

// statusLeaf reads the certificate by which commands on this machine look at the cluster. The
// node itself has no use for it.
func (k *Keys) statusLeaf() (*x509.Certificate, error) {
	in := func(file string) string { return filepath.Join(k.cfg.Certificates, file) }
	p, err := cert.LoadPair(in("status.pem"), in("status.key"))
	if err != nil {
		return nil, err
	}
	return cert.ParseLeaf(p.Cert)
}

// Certificates has a node request new certificates, or gives them to it.
func (k *Keys) Certificates(ctx context.Context, o wire.CertificateOrder) (a wire.CertificateAnswer, err error) {
	if o.Node == k.cfg.Node {
		return k.certificates(o)
	}
	i := slices.IndexFunc(k.in.Replicas.Meta().Nodes(), func(r metafsm.Node) bool { return r.ID == o.Node && r.State != metafsm.NodeRemoved })
	if i < 0 {
		return a, router.Errorf(router.NotFound, "", "there is no node %s", o.Node)
	}
	member := k.in.Replicas.Meta().Nodes()[i].Member
	err = k.in.Peers.Ask(ctx, member, methodCerts, o, &a)
	if errors.Is(err, transport.ErrOutcomeUnknown) && len(o.Certificate) == 0 {
		// At the end of a rotation the order itself has the connection cut that it came by.
		err = k.in.Peers.Ask(ctx, member, methodCerts, o, &a)
	}
	return a, err
}

// serveCertificates answers Certificates.
func (k *Keys) serveCertificates(_ context.Context, body []byte) ([]byte, error) {
	var o wire.CertificateOrder
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("read an order about certificates: %w", err)
	}
	a, err := k.certificates(o)
	if err != nil {
		return nil, peer.Fault{Err: err}
	}
	return json.Marshal(a)
}

func (k *Keys) certificates(o wire.CertificateOrder) (a wire.CertificateAnswer, err error) {
	p := &k.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(o.Authorities) == 0 && len(o.Certificate) == 0 {
		return k.requestCertificates(p)
	}
	trusted, err := k.trustedAfter(o)
	if err != nil {
		return a, router.Errorf(router.InvalidRequest, "", "%v", err)
	}
	in := func(file string) string { return filepath.Join(k.cfg.Certificates, file) }
	if len(o.Certificate) > 0 {
		if time.Since(p.made) > pendingFor {
			return a, router.Errorf(router.InvalidRequest, "", "this node did not request certificates lately")
		}
		if err := k.checkOwn(o, p, trusted); err != nil {
			return a, router.Errorf(router.InvalidRequest, "", "%v", err)
		}
	}
	// What is trusted comes first: a certificate of an authority that this node does
	// not trust itself would be of no use.
	if len(o.Authorities) > 0 {
		err = datadir.WriteSynced(in("ca.pem"), o.Authorities)
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
	k.node.Reload()
	k.server.Reload()
	k.cfg.Log.Info("certificates were replaced", "authorities", len(o.Authorities) > 0, "own", len(o.Certificate) > 0)
	return a, nil
}

// checkOwn reports whether the certificates of an order are this node's, for the keys that
// it has made.
func (k *Keys) checkOwn(o wire.CertificateOrder, p *pendingKeys, trusted []*x509.Certificate) error {
	leaf, err := cert.Check(cert.Pair{Cert: o.Certificate, Key: p.node}, trusted, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return fmt.Errorf("the node's certificate: %w", err)
	}
	if who, err := cert.NodeIn(leaf); err != nil || who != k.cfg.Node {
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
	if who, err := cert.StatusIn(leaf); err != nil || who != k.cfg.Node {
		return errors.New("the certificate for facet status names another node, or another role")
	}
	return nil
}

// trustedAfter returns the authorities that this node trusts after an order. The own
// certificate must stay good.
func (k *Keys) trustedAfter(o wire.CertificateOrder) ([]*x509.Certificate, error) {
	if len(o.Authorities) == 0 {
		return k.node.Authorities(), nil
	}
	list, err := cert.ParseAuthorities(o.Authorities)
	if err != nil {
		return nil, fmt.Errorf("the authorities: %w", err)
	}
	have := k.node.Authorities()
	if !slices.ContainsFunc(list, func(c *x509.Certificate) bool {
		return slices.ContainsFunc(have, c.Equal) && c.Subject.CommonName == have[0].Subject.CommonName
	}) {
		return nil, errors.New("none of the authorities is trusted now: one has to take over from the other")
	}
	leaf := k.node.Leaf()
	if len(o.Certificate) == 0 && !slices.ContainsFunc(list, func(c *x509.Certificate) bool { return leaf.CheckSignatureFrom(c) == nil }) {
		return nil, errors.New("none of the authorities has issued this node's certificate: renew it first")
	}
	return list, nil
}

// requestCertificates makes keys and their requests.
func (k *Keys) requestCertificates(p *pendingKeys) (a wire.CertificateAnswer, err error) {
	var errs [3]error
	a.Request, p.node, errs[0] = cert.Request()
	a.ServerRequest, p.server, errs[1] = cert.Request()
	a.StatusRequest, p.status, errs[2] = cert.Request()
	if err := errors.Join(errs[:]...); err != nil {
		return a, err
	}
	if err := writable(k.cfg.Certificates); err != nil {
		return a, router.Errorf(router.InvalidRequest, "", "the certificates' folder of this node can't be changed: %v", err)
	}
	p.made = time.Now()
	a.Hosts = cert.Hosts(k.server.Leaf())
	return a, nil
}

// writable reports whether files can be put into a folder, before anybody relies on it.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
