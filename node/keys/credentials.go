package keys

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"facet/node/cert"
	"facet/node/datadir"
	"facet/node/transport"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// pendingTimeout is how long the keys of a request wait for their certificates.
const pendingTimeout = 10 * time.Minute

// pendingKeys has the keys of requested certificates until these arrive. It is in memory
// only, and the next request replaces the keys.
type pendingKeys struct {
	mu                   sync.Mutex // guards all fields
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
	if p, err := cert.LoadPair(k.path("status.pem"), k.path("status.key")); err == nil {
		if leaf, err := cert.ParseLeaf(p.Cert); err == nil {
			c.StatusEnds = leaf.NotAfter
		}
	}
	for _, authority := range k.node.Authorities() {
		c.Trusted = append(c.Trusted, cert.Fingerprint(authority))
		if leaf.CheckSignatureFrom(authority) == nil {
			c.Issuer = cert.Fingerprint(authority)
		}
	}
	return c
}

// certificateTries is how often an order about authorities is sent to a node whose connection breaks.
const certificateTries = 4

// Certificates asks a node for requests for new certificates, or hands the signed
// certificates to it.
func (k *Keys) Certificates(ctx context.Context, o wire.CertificateOrder) (a wire.CertificateAnswer, err error) {
	if o.Node == k.cfg.Node {
		return k.certificates(ctx, o)
	}
	i := slices.IndexFunc(k.in.Replicas.Meta().Nodes(), func(r metafsm.Node) bool { return r.ID == o.Node && r.State != metafsm.NodeRemoved })
	if i < 0 {
		return a, router.Errorf(router.NotFound, "", "there is no node %s", o.Node)
	}
	member := k.in.Replicas.Meta().Nodes()[i].Member
	for try := 1; ; try++ {
		err = k.in.Peers.Ask(ctx, member, methodCerts, o, &a)
		// The last order of a rotation cuts the connection on which it arrived, and this node may
		// cut the next one when it forgets the authority itself.
		if !errors.Is(err, transport.ErrOutcomeUnknown) || len(o.Certificate) > 0 || try == certificateTries {
			return a, err
		}
	}
}

// certificates carries out an order for this node.
func (k *Keys) certificates(ctx context.Context, o wire.CertificateOrder) (a wire.CertificateAnswer, err error) {
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
	if len(o.Certificate) > 0 {
		if time.Since(p.made) > pendingTimeout {
			return a, router.Errorf(router.InvalidRequest, "", "this node did not request certificates lately")
		}
		if err := k.checkOwn(o, p, trusted); err != nil {
			return a, router.Errorf(router.InvalidRequest, "", "%v", err)
		}
	}
	// The authorities come first: this node could not use a certificate of an authority
	// that it does not trust.
	if len(o.Authorities) > 0 {
		err = datadir.WriteSynced(k.path("ca.pem"), o.Authorities)
	}
	if err == nil && len(o.Certificate) > 0 {
		err = errors.Join(k.save("node", o.Certificate, p.node), k.save("server", o.Server, p.server), k.save("status", o.Status, p.status))
		p.made = time.Time{}
	}
	if err != nil {
		return a, router.Errorf(router.InvalidRequest, "", "the certificates' folder of this node can't be changed: %v", err)
	}
	k.node.Reload()
	k.server.Reload()
	k.cfg.Log.InfoContext(ctx, "certificates were replaced", "authorities", len(o.Authorities) > 0, "own", len(o.Certificate) > 0)
	return a, nil
}

// save writes the files of a certificate and its key.
func (k *Keys) save(name string, certificate, key []byte) error {
	return cert.Pair{Cert: certificate, Key: key}.Save(k.path(name+".pem"), k.path(name+".key"))
}

// checkOwn returns an error unless the certificates of an order name this node and fit its
// pending keys.
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
	if leaf, err = cert.Check(cert.Pair{Cert: o.Status, Key: p.status}, trusted, x509.ExtKeyUsageClientAuth); err != nil {
		return fmt.Errorf("the certificate for facet status: %w", err)
	}
	if who, err := cert.StatusIn(leaf); err != nil || who != k.cfg.Node {
		return errors.New("the certificate for facet status names another node, or another role")
	}
	return nil
}

// trustedAfter returns the authorities that this node will trust after an order. It returns
// an error if the node's own certificate would not be trusted any more.
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

// requestCertificates makes new pending keys and their requests.
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

// writable returns an error if no file can be created in a folder.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
