package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"facet/cmd/facet/admin"
	packs "facet/cmd/facet/models"
	"facet/cmd/facet/serve"
	"facet/node/cert"
	"facet/node/datadir"
	"facet/node/wire"
)

// errStranger is returned when another machine than the inviter answers.
var errStranger = errors.New("the machine that answers there does not have the authority that the token names: " +
	"the token is of another cluster, or somebody is between the two machines")

// Join makes this machine a node of the token's cluster. The node joins when it is
// started. Join reuses the files of a failed attempt.
func Join(ctx context.Context, m Machine, t Token) (Made, error) {
	m, f, err := m.complete()
	if err != nil {
		return Made{}, err
	}
	if over := time.Since(t.Expires).Round(time.Second); over > 0 {
		return Made{}, fmt.Errorf("the token expired %v ago by this machine's clock (it is %s here): ask for another invitation, or repair the clock",
			over, time.Now().UTC().Format(time.RFC3339))
	}
	all := m.Assets.Models
	pack, err := m.check(ctx, t.Addresses[0])
	if err != nil {
		return Made{}, err
	}
	a, err := m.request(ctx, t, f, pack, packs.Identities(all))
	if err != nil {
		return Made{}, err
	}
	if m.Assets.Models, _, err = serve.PackOf(all, a.Pack); err != nil {
		return Made{}, err
	}
	err = m.write(f, map[string]any{"seeds": a.Seeds, "region": a.Region},
		admin.Profile{Admin: []string{m.admin()}, Certificates: f.certificates()})
	return m.made(f, ""), err
}

// request asks the inviter for what the node needs, and writes the answer to f.
func (m Machine) request(ctx context.Context, t Token, f folder, pack string, packs []string) (a joinAnswer, err error) {
	who, err := datadir.Identify(f.data())
	if err != nil {
		return a, err
	}
	q := joinRequest{
		Secret: t.Secret[:], Node: who, Name: m.Name, Hosts: m.hosts(), Pack: pack, Packs: packs, Version: wire.Version, Time: time.Now(),
	}
	var keys [3][]byte
	var errs [3]error
	q.Request, keys[0], errs[0] = cert.Request()
	q.ServerRequest, keys[1], errs[1] = cert.Request()
	q.StatusRequest, keys[2], errs[2] = cert.Request()
	if err := errors.Join(errs[:]...); err != nil {
		return a, err
	}
	if a, err = ask(ctx, t, q); err != nil {
		return a, err
	}
	return a, keep(f, a, keys)
}

// keep writes the inviter's answer.
func keep(f folder, a joinAnswer, keys [3][]byte) error {
	trusted, err := cert.ParseAuthorities(a.Authorities)
	if err != nil {
		return fmt.Errorf("the authorities that the inviter gave: %w", err)
	}
	type given struct {
		name string
		pair cert.Pair
		use  x509.ExtKeyUsage
	}
	list := []given{
		{"node", cert.Pair{Cert: a.Certificate, Key: keys[0]}, x509.ExtKeyUsageClientAuth},
		{"server", cert.Pair{Cert: a.Server, Key: keys[1]}, x509.ExtKeyUsageServerAuth},
		{"status", cert.Pair{Cert: a.Status, Key: keys[2]}, x509.ExtKeyUsageClientAuth},
	}
	for _, g := range list {
		if _, err := cert.Check(g.pair, trusted, g.use); err != nil {
			return fmt.Errorf("the certificate that the inviter gave: %w", err)
		}
	}
	in := func(name string) string { return filepath.Join(f.certificates(), name) }
	for _, dir := range []string{f.certificates(), f.keys()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make the folder of the node: %w", err)
		}
	}
	errs := []error{os.WriteFile(in("ca.pem"), a.Authorities, 0o644)}
	for _, g := range list {
		errs = append(errs, g.pair.Save(in(g.name+".pem"), in(g.name+".key")))
	}
	return errors.Join(append(errs,
		os.WriteFile(f.clusterKey(), a.ClusterKey, 0o600),
		os.WriteFile(f.gossipKey(), a.GossipKey, 0o600),
	)...)
}

// ask sends the request to the first address that answers.
func ask(ctx context.Context, t Token, q joinRequest) (a joinAnswer, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, fmt.Errorf("ask to join: %w", err)
	}
	client := &http.Client{Timeout: wireTimeout, Transport: &http.Transport{
		TLSClientConfig: pinned(t.Authority), DialContext: (&net.Dialer{Timeout: wireTimeout / 3}).DialContext,
		DisableKeepAlives: true,
	}}
	for _, address := range t.Addresses {
		if a, err = askAt(ctx, client, address, body); err == nil || errors.Is(err, errStranger) || isRefusal(err) {
			return a, err
		}
	}
	return a, fmt.Errorf("the machine that invited does not answer: is \"facet cluster invite\" still open there, and the port not blocked? %w", err)
}

// refusedError is a refusal by the inviter.
type refusedError struct{ message string }

// Error returns the inviter's words.
func (e *refusedError) Error() string { return e.message }

func isRefusal(err error) bool {
	_, ok := errors.AsType[*refusedError](err)
	return ok
}

func askAt(ctx context.Context, c *http.Client, address string, body []byte) (a joinAnswer, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+pathJoin, bytes.NewReader(body))
	if err != nil {
		return a, fmt.Errorf("ask to join: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		return a, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, wireBytesMax))
	if err != nil {
		return a, fmt.Errorf("read the inviter's answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		var no refusal
		if json.Unmarshal(b, &no) != nil || no.Message == "" {
			no.Message = "the inviter answered " + answer.Status
		}
		return a, &refusedError{no.Message}
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("read the inviter's answer: %w", err)
	}
	return a, nil
}

// pinned accepts a server with a certificate of the authority with that hash,
// whatever its host name. The token is the only thing that this machine knows about
// the cluster.
func pinned(authority [sha256.Size]byte) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		InsecureSkipVerify: true, // VerifyConnection checks
		VerifyConnection: func(cs tls.ConnectionState) error {
			roots := x509.NewCertPool()
			for _, c := range cs.PeerCertificates[1:] {
				if cert.Hash(c) == authority {
					roots.AddCert(c)
				}
			}
			if _, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots}); err != nil {
				return fmt.Errorf("%w (%w)", errStranger, err)
			}
			return nil
		},
	}
}
