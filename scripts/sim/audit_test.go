package sim

import (
	"context"
	"time"

	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/scripts/chaos/ledger"
)

// spooledTime is how long a record of best effort may lie on one node's disk only, while a majority serves.
const spooledTime = 10 * time.Second

// modes are the modes of the audit log, in turns.
var modes = []metafsm.AuditMode{metafsm.AuditBestEffort, metafsm.AuditStrict}

// audited creates a tenant with an audit log. It returns the tenant's client and a ledger.
func (s *attackedWorld) audited(tenant string, mode metafsm.AuditMode) (*nodetest.Client, *ledger.Ledger) {
	client, id := s.cluster.ClientOf(tenant)
	r := s.cluster.Nodes[0].Node.Router()
	if err := r.SetAudit(s.t.Context(), id, mode, 0); err != nil {
		s.t.Fatal(err)
	}
	key, err := r.CreateAccessKey(s.t.Context(), id, router.KeyTerms{Role: router.RoleAuditor})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range s.cluster.Nodes {
		if err := m.Node.Router().SyncMeta(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	return client, ledger.New(s.caller(client.Keyed(key))(""))
}

// forfeit notes that a node's disk has lost what it wrote since a time, and shortly before.
func (s *attackedWorld) forfeit(v int, since time.Time) {
	s.losses = append(s.losses, ledger.Loss{Node: s.cluster.Nodes[v].Config.Name, From: since.Add(-spooledTime), To: time.Now()})
}

// audit compares the audit log with what clients saw. A strict record lies on a majority, so no loss of a
// disk excuses it.
func (s *attackedWorld) audit(ctx context.Context, records *ledger.Ledger, mode metafsm.AuditMode, sum *ledger.Sum) (err error) {
	losses := s.losses
	if mode == metafsm.AuditStrict {
		losses = nil
	}
	*sum, err = records.Check(ctx, losses)
	return err
}
