package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"facet/node/wire"
	"facet/scripts/chaos/ledger"
)

// The modes of the audit log.
const (
	auditStrict     = "strict"
	auditBestEffort = "best-effort"
	auditOff        = "off"
)

// spooledTime is how long a record of best effort may lie on one node's disk only, while a majority serves.
const spooledTime = 10 * time.Second

// ledger sets the audit mode of the clients' tenant, and returns a ledger with the tenant's auditor.
func (c *cluster) ledger(ctx context.Context, own *client, mode string) (*ledger.Ledger, error) {
	if _, err := c.facet(ctx, "tenant", "set", tenant, "--audit", mode); err != nil {
		return nil, err
	}
	out, err := c.facet(ctx, "key", "create", "--tenant", tenant, "--role", "auditor", "--json")
	if err != nil {
		return nil, err
	}
	var key wire.KeyPair
	if err := json.Unmarshal(out, &key); err != nil {
		return nil, fmt.Errorf("read the auditor's key: %w", err)
	}
	auditor := *own
	auditor.Signer.AccessKey, auditor.Signer.SecretKey = key.AccessKey, key.SecretKey
	return ledger.New(&auditor), nil
}

// forfeit notes that a node's disk has lost what it wrote since a time, and shortly before.
func (n *nemesis) forfeit(p *process, since time.Time) {
	n.losses = append(n.losses, ledger.Loss{Node: p.Name, From: since.Add(-spooledTime), To: time.Now()})
}

// audited compares the audit log with what clients saw. A strict record lies on a majority, so no loss of a
// disk excuses it.
func (n *nemesis) audited(ctx context.Context, l *ledger.Ledger, mode string) error {
	if mode == auditOff {
		return nil
	}
	losses := n.losses
	if mode == auditStrict {
		losses = nil
	}
	sum, err := l.Check(ctx, losses)
	n.say("audit, %s: %s", mode, sum)
	return err
}
