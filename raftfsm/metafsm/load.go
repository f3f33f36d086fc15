package metafsm

import "facet/internal/codec"

// Load restores records of a backup. The first Load of a backup has no records and starts
// the restoration. No other restoration may be in progress, and with Whole the cluster
// must have no tenants. A repeated Load changes nothing.
type Load struct {
	Backup [32]byte `cbor:"1,keyasint"`
	Whole  bool     `cbor:"2,keyasint,omitempty"`
	Time   int64    `cbor:"3,keyasint"`
	// Have is the number of records loaded before. Records are the next (Copied.Encode).
	Have    uint64   `cbor:"4,keyasint,omitempty"`
	Records [][]byte `cbor:"5,keyasint,omitempty"`
	// Done ends the restoration.
	Done bool `cbor:"6,keyasint,omitempty"`
}

// LoadAnswer answers Load. The status is one of:
//
//   - Done.
//   - Exists: the cluster has tenants, or another restoration is in progress. Nothing
//     was loaded.
//   - Conflict: a record contradicts the records of the cluster. Load stopped before it.
//   - OtherKey: a retired key wrapped the secret of a record. Load stopped before it.
type LoadAnswer struct {
	Status      Status      `cbor:"1,keyasint"`
	Restoration Restoration `cbor:"2,keyasint"`
}

func (c Load) apply(m *Machine) LoadAnswer {
	status := c.do(m)
	answer := LoadAnswer{Status: status}
	if m.state.restoration != nil {
		answer.Restoration = *m.state.restoration
	}
	return answer
}

func (c Load) do(m *Machine) Status {
	now := m.state.restoration
	if now == nil || now.Done && (now.Backup != c.Backup || !now.Whole && c.Have == 0 && len(c.Records) == 0 && !c.Done) {
		if c.Have > 0 || len(c.Records) > 0 || c.Done || c.Whole && len(m.state.tenants) > 0 {
			return Exists
		}
		m.state.restoration = &Restoration{Backup: c.Backup, Whole: c.Whole, Time: c.Time}
		m.touch()
		return Done
	}
	if now.Backup != c.Backup || now.Whole != c.Whole {
		return Exists
	}
	if now.Done || c.Have != now.Loaded {
		return Done // the answer has the number of loaded records
	}
	next := *now
	status := Done
	for _, record := range c.Records {
		if status = m.state.restore(record); status != Done {
			break
		}
		next.Loaded++
	}
	next.Done = c.Done && status == Done
	m.state.restoration = &next
	m.touch()
	return status
}

// Restoration describes the newest restoration of a backup into the cluster.
type Restoration struct {
	// Backup is the digest of the backup's manifest.
	Backup [32]byte `cbor:"1,keyasint"`
	// Whole reports that the backup is of a cluster, not of one gallery.
	Whole bool `cbor:"2,keyasint,omitempty"`
	// Loaded is the number of records loaded so far.
	Loaded uint64 `cbor:"3,keyasint,omitempty"`
	// Done reports that all records were loaded.
	Done bool `cbor:"4,keyasint,omitempty"`
	// Time is the start, in milliseconds since 1970.
	Time int64 `cbor:"5,keyasint"`
}

// Restoration returns the newest restoration. ok is false if there was none.
func (m *Machine) Restoration() (r Restoration, ok bool) {
	return find(m, func(st *state) *Restoration { return st.restoration })
}

// restore adds a record of a backup. It gets a new Seq.
func (st *state) restore(record []byte) Status {
	c, err := CopiedOf(record)
	if err != nil {
		return Conflict
	}
	// The cluster's key may have been replaced since the restoration started.
	if !st.wrapped(c.secret()) {
		return OtherKey
	}
	switch {
	case c.Tenant != nil:
		if len(c.Tenant.Audit.Former) > FormerMax || c.Tenant.State == TenantDeleting {
			return Conflict // no backup has it
		}
		if known := st.tenants[c.Tenant.ID]; known != nil {
			if known.record.Name != c.Tenant.Name || known.record.State == TenantDeleting {
				return Conflict
			}
			return Done
		}
		c.Tenant.Seq = st.next()
	case c.Gallery != nil && st.deleting(c.Gallery.Tenant), c.AccessKey != nil && st.deleting(c.AccessKey.Tenant):
		return Conflict
	case c.Gallery != nil:
		c.Gallery.Seq = st.next()
	case c.Application != nil:
		c.Application.Seq = st.next()
	case c.Cluster != nil:
		return Conflict
	}
	message, err := codec.Split(c.Encode())
	if err != nil {
		return Conflict
	}
	l := loader{state: st, begun: true, missing: 1}
	if l.load(message, nil) != nil {
		return Conflict
	}
	return Done
}

// secret returns the part of the record that the cluster's key has wrapped, if any.
func (c Copied) secret() []byte {
	switch {
	case c.Gallery != nil:
		return c.Gallery.WrappedKey
	case c.AccessKey != nil:
		return c.AccessKey.SealedSecret
	case c.Application != nil:
		return c.Application.SealedKey
	default:
		return nil
	}
}
