package metafsm

import (
	"fmt"
	"slices"

	"facet/internal/id"
)

// AuditMode says when a request's record is durable.
type AuditMode uint8

// The modes of audits. The numbers are stored.
const (
	// AuditDefault is the mode that a tenant has until SetAudit: AuditBestEffort.
	AuditDefault AuditMode = 0
	// AuditBestEffort: the record is on the disk of the node that answers, or on a majority, before the
	// answer.
	AuditBestEffort AuditMode = 1
	// AuditStrict: the record is on a majority before the answer.
	AuditStrict AuditMode = 2
	// AuditOff: there are no records of requests.
	AuditOff AuditMode = 3
)

var auditNames = map[AuditMode]string{AuditBestEffort: "best-effort", AuditStrict: "strict", AuditOff: "off"}

// String returns the name of the mode, as operators write it.
func (m AuditMode) String() string {
	if name, ok := auditNames[m.now()]; ok {
		return name
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// now returns what the mode stands for.
func (m AuditMode) now() AuditMode {
	if m == AuditDefault {
		return AuditBestEffort
	}
	return m
}

// AuditModeNamed returns the mode with a name.
func AuditModeNamed(name string) (AuditMode, bool) {
	for m, n := range auditNames {
		if n == name {
			return m, true
		}
	}
	return 0, false
}

// AuditDaysDefault is how many days records keep their contents, unless the tenant has another number.
const AuditDaysDefault = 184

// ClusterAuditDays is how many days the records of the cluster's own log (id.ClusterLog) keep their contents.
const ClusterAuditDays = 365

// Audit holds the settings of a tenant's audit log.
type Audit struct {
	Mode AuditMode `cbor:"1,keyasint,omitempty"`
	// Days is how many days records keep their contents. 0 stands for AuditDaysDefault.
	Days uint32 `cbor:"2,keyasint,omitempty"`
	// WrappedKey is the audit key, wrapped by the cluster's master key. It is empty until SetAuditKey.
	WrappedKey []byte `cbor:"3,keyasint,omitempty"`
	// Former is the signed checkpoint of the tenant's log that a restored backup had, with FormerMax bytes at
	// most, or empty. The tenant's log follows that one.
	Former []byte `cbor:"40,keyasint,omitempty"`
}

// FormerMax is the most bytes of Audit.Former.
const FormerMax = 4 << 10

// Retention returns how many days records keep their contents.
func (a Audit) Retention() uint32 {
	if a.Days == 0 {
		return AuditDaysDefault
	}
	return a.Days
}

// AuditOf returns how a tenant's audit log is kept. A tenant that does not exist has AuditOff. The log of the
// cluster itself is always of best effort.
func AuditOf(m *Machine, t id.Tenant) Audit {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c := m.state.cluster; c != nil && t == id.ClusterLog {
		return Audit{Mode: AuditBestEffort, Days: ClusterAuditDays, WrappedKey: c.AuditKey}
	}
	if of := m.state.tenants[t]; of != nil {
		a := of.record.Audit // WrappedKey and Former are never changed
		a.Mode = a.Mode.now()
		return a
	}
	return Audit{Mode: AuditOff}
}

// SetAudit sets when a tenant's records are durable and how long they stay. 0 days leave the present number.
// The status is Done, UnknownTenant or BeingDeleted.
type SetAudit struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	Mode   AuditMode `cbor:"2,keyasint,omitempty"`
	Days   uint32    `cbor:"3,keyasint,omitempty"`
}

func (c SetAudit) apply(m *Machine) Status {
	return changeAudit(m, c.Tenant, func(a *Audit) Status {
		a.Mode = c.Mode
		if c.Days > 0 {
			a.Days = c.Days
		}
		return Done
	})
}

// SetAuditKey is the command that gives a tenant, or id.ClusterLog, its audit key. The status is Done, UnknownTenant or
// BeingDeleted, Exists if there is a key, or OtherKey if a retired key has wrapped this one.
type SetAuditKey struct {
	Tenant     id.Tenant `cbor:"1,keyasint"`
	WrappedKey []byte    `cbor:"2,keyasint"`
}

func (c SetAuditKey) apply(m *Machine) Status {
	give := func(key *[]byte) Status {
		switch {
		case len(*key) > 0 || len(c.WrappedKey) == 0:
			return Exists
		case !m.state.wrapped(c.WrappedKey):
			return OtherKey
		}
		*key = slices.Clone(c.WrappedKey)
		return Done
	}
	if c.Tenant != id.ClusterLog {
		return changeAudit(m, c.Tenant, func(a *Audit) Status { return give(&a.WrappedKey) })
	}
	if m.state.cluster == nil {
		return UnknownTenant
	}
	cluster := *m.state.cluster
	status := give(&cluster.AuditKey)
	if status == Done {
		m.state.cluster = &cluster
		m.touch()
	}
	return status
}

// changeAudit changes the audit of a tenant that is not under deletion.
func changeAudit(m *Machine, of id.Tenant, change func(*Audit) Status) Status {
	t := m.state.tenants[of]
	switch {
	case t == nil:
		return UnknownTenant
	case t.record.State == TenantDeleting:
		return BeingDeleted
	}
	record := *t.record
	status := change(&record.Audit)
	if a, old := record.Audit, t.record.Audit; status == Done && (a.Mode != old.Mode || a.Days != old.Days || len(old.WrappedKey) == 0 && len(a.WrappedKey) > 0) {
		t.record = &record
		m.touch()
	}
	return status
}
