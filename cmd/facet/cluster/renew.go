package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/authority"
	"facet/node/cert"
	"facet/node/wire"
)

// certificateLife is how long the certificates of nodes are valid. They are renewed
// when a third of it is left.
const certificateLife = 365 * 24 * time.Hour

// Keeper renews the certificates and keys of a cluster's nodes over their admin
// ports. It has the authority.
type Keeper struct {
	Authority *authority.Folder
	Client    *admin.Client
	Out       io.Writer
}

// Renew sends new certificates to the nodes with these names. Without names it
// sends them to the nodes whose certificates are in the last third of their life or
// come from another authority. It tries all nodes; the error names the nodes that
// did not take them.
func (k Keeper) Renew(ctx context.Context, names []string) error {
	s, err := k.Client.Status(ctx)
	if err != nil {
		return err
	}
	signer := cert.Fingerprint(k.Authority.Authority().Certificate())
	var errs []error
	renewed := 0
	for _, name := range names {
		if !slices.ContainsFunc(s.Nodes, func(m wire.Member) bool { return m.Name == name || m.ID.String() == name }) {
			return fmt.Errorf("the cluster has no node %q", name)
		}
	}
	for _, m := range s.Nodes {
		named := slices.Contains(names, m.Name) || slices.Contains(names, m.ID.String())
		if len(names) > 0 && !named || m.State == wire.StateRemoved || !named && !due(m, signer) {
			continue
		}
		until, err := k.renew(ctx, m)
		if err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", m.Name, err))
			continue
		}
		renewed++
		fmt.Fprintf(k.Out, "node %s has new certificates, good until %s\n", m.Name, until.Format(time.DateOnly))
	}
	if renewed == 0 && len(errs) == 0 {
		fmt.Fprintln(k.Out, "no certificate is due")
	}
	return errors.Join(errs...)
}

// due reports whether to renew a node's certificates. It also returns true for a
// node that does not answer: Renew then reports the failure.
func due(m wire.Member, signer string) bool {
	c := m.Credentials
	if c == nil || c.Issuer != signer {
		return true
	}
	return slices.ContainsFunc([]time.Time{c.NodeEnds, c.ServerEnds, c.StatusEnds}, func(end time.Time) bool { return time.Until(end) < certificateLife/3 })
}

func (k Keeper) renew(ctx context.Context, m wire.Member) (until time.Time, err error) {
	ca := k.Authority.Authority()
	q, err := k.Client.Certificates(ctx, wire.CertificateOrder{Node: m.ID})
	if err != nil {
		return until, err
	}
	o := wire.CertificateOrder{Node: m.ID, Authorities: ca.CertPEM()}
	var errs [3]error
	o.Certificate, errs[0] = ca.SignNode(q.Request, m.ID, q.Hosts)
	o.Server, errs[1] = ca.SignServer(q.ServerRequest, q.Hosts)
	o.Status, errs[2] = ca.SignStatus(q.StatusRequest, m.ID)
	if err := errors.Join(errs[:]...); err != nil {
		return until, err
	}
	if _, err := k.Client.Certificates(ctx, o); err != nil {
		return until, err
	}
	list, err := cert.ParseLeaf(o.Certificate)
	if err != nil {
		return until, err
	}
	return list.NotAfter, nil
}

// trust makes every node trust the authorities of the folder.
func (k Keeper) trust(ctx context.Context) error {
	s, err := k.Client.Status(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range s.Nodes {
		if m.State == wire.StateRemoved {
			continue
		}
		o := wire.CertificateOrder{Node: m.ID, Authorities: k.Authority.Authority().CertPEM()}
		if _, err := k.Client.Certificates(ctx, o); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", m.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Replace takes the next of the three steps that replace an authority: all nodes
// trust both, all get certificates of the new one, all forget the old one. Between
// the steps, clients that check the nodes' certificates can be given the new
// ca.pem. A step that did not reach every node is repeated.
func (k Keeper) Replace(ctx context.Context) error {
	behind, err := k.behind(ctx, k.Authority.Phase())
	if err != nil {
		return err
	}
	if !behind {
		if err := k.Authority.Advance(); err != nil {
			return err
		}
	}
	text := "step 3 of 3: the old authority is forgotten; %s has the new one\n"
	take := k.trust
	switch k.Authority.Phase() {
	case authority.PhaseTrusted:
		text = "step 1 of 3: all nodes trust the old authority and the new one. Give %s, which has both now, to all clients; then give the same command again\n"
	case authority.PhaseTakenOver:
		text = "step 2 of 3: all nodes have certificates of the new authority; %s still has both. When nothing checks with the old one alone any more, give the same command again\n"
		take = func(ctx context.Context) error { return k.Renew(ctx, nil) }
	case authority.PhaseSettled:
	}
	if err := take(ctx); err != nil {
		return fmt.Errorf("not every node took the step, give the same command again: %w", err)
	}
	_, err = fmt.Fprintf(k.Out, text, k.Authority.CA())
	return err
}

// behind reports whether some node has not yet taken the step that led to a phase.
// All nodes must answer: a node that missed a step could not talk to the others
// after the next one.
func (k Keeper) behind(ctx context.Context, phase authority.Phase) (bool, error) {
	s, err := k.Client.Status(ctx)
	if err != nil {
		return false, err
	}
	ca := k.Authority.Authority()
	signer := cert.Fingerprint(ca.Certificate())
	behind := false
	for _, m := range s.Nodes {
		switch c := m.Credentials; {
		case m.State == wire.StateRemoved:
		case c == nil:
			return false, fmt.Errorf("node %s does not answer: bring it back, or remove it if it is gone for good", m.Name)
		case len(c.Trusted) != ca.Trusted() || !slices.Contains(c.Trusted, signer):
			behind = true
		case phase == authority.PhaseTakenOver && c.Issuer != signer:
			behind = true
		}
	}
	return behind, nil
}
