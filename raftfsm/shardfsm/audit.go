package shardfsm

import (
	"errors"

	"facet/internal/id"
	"facet/shard/auditlog"
)

// Audit returns the audit logs of the tenants whose home the shard is. Restore keeps the object.
func (m *Machine) Audit() *auditlog.Book { return m.audit }

// LogAnswer answers all commands on audit logs. The status is Done, Replayed, UnknownLog, WriterGap,
// LogsFull or LogBounds. First is set for AppendLog with Done and Replayed (auditlog.Appended).
type LogAnswer struct {
	Status Status `cbor:"1,keyasint"`
	First  uint64 `cbor:"2,keyasint,omitempty"`
}

// BeginLog is the command that begins the audit log of a tenant, if there is none.
type BeginLog struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	// Former is the last known checkpoint of the log before a restoration.
	Former []byte `cbor:"2,keyasint,omitempty"`
	// First is the entry that names Former, or nothing.
	First []auditlog.Entry `cbor:"40,keyasint,omitempty"`
}

func (c BeginLog) apply(m *Machine) LogAnswer {
	return LogAnswer{Status: logStatus(m.audit.Begin(c.Tenant, c.Former, c.First...))}
}

// AppendLog appends a batch of entries to the audit log of a tenant.
type AppendLog struct {
	Tenant  id.Tenant       `cbor:"1,keyasint"`
	Writer  auditlog.Writer `cbor:"2,keyasint"`
	Number  uint64          `cbor:"3,keyasint"`
	Entries []auditlog.New  `cbor:"4,keyasint"`
}

func (c AppendLog) apply(m *Machine) LogAnswer {
	at, err := m.audit.Append(auditlog.Batch(c))
	a := LogAnswer{logStatus(err), at.First}
	if at.Replayed {
		a.Status = Replayed
	}
	return a
}

// ExpireLog removes the contents of the first entries of a tenant's audit log, up to and without the
// one at Before.
type ExpireLog struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	Before uint64    `cbor:"2,keyasint"`
}

func (c ExpireLog) apply(m *Machine) LogAnswer {
	return LogAnswer{Status: logStatus(m.audit.Expire(c.Tenant, c.Before))}
}

// DropLog removes the audit log of a tenant that was deleted.
type DropLog struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
}

func (c DropLog) apply(m *Machine) LogAnswer {
	m.audit.Drop(c.Tenant)
	return LogAnswer{Status: Done}
}

// logStatus returns the status for an error of the audit logs.
func logStatus(err error) Status {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, auditlog.ErrUnknown):
		return UnknownLog
	case errors.Is(err, auditlog.ErrWriter):
		return WriterGap
	case errors.Is(err, auditlog.ErrFull):
		return LogsFull
	case errors.Is(err, auditlog.ErrMalformed):
		return LogBounds
	default:
		panic("bug: an audit log fails in an unknown way: " + err.Error())
	}
}
