package metafsm

import "facet/internal/codec"

// Load restores records of a backup. The first one of a backup has no records and
// begins: with Whole the cluster must have no tenants, and no other restoration may
// be under way. The same command again changes nothing.
type Load struct {
	Backup [32]byte `cbor:"1,keyasint"`
	Whole  bool     `cbor:"2,keyasint,omitempty"`
	Time   int64    `cbor:"3,keyasint"`
	// Have is how many were loaded before, Records are the next ones (Copied.Encode).
	Have    uint64   `cbor:"4,keyasint,omitempty"`
	Records [][]byte `cbor:"5,keyasint,omitempty"`
	// Done ends the restoration.
	Done bool `cbor:"6,keyasint,omitempty"`
}

// LoadAnswer is Done, Exists (the cluster is not empty, or another backup is being
// restored: nothing was done), or of the first record that was not taken Conflict (it
// contradicts what is there) or OtherKey.
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
		return Done // the answer tells how far it is
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

// Restoration says which backup the cluster's records come from.
type Restoration struct {
	// Backup is the digest of the backup's manifest.
	Backup [32]byte `cbor:"1,keyasint"`
	// Whole tells that everything in the cluster comes from it, not one gallery only.
	Whole bool `cbor:"2,keyasint,omitempty"`
	// Loaded counts the records that were loaded.
	Loaded uint64 `cbor:"3,keyasint,omitempty"`
	// Done tells that all were; before that the cluster is half restored.
	Done bool `cbor:"4,keyasint,omitempty"`
	// Time is when it began, in milliseconds since 1970.
	Time int64 `cbor:"5,keyasint"`
}

// Restoration gives the newest restoration; ok is false if there was none.
func (m *Machine) Restoration() (r Restoration, ok bool) {
	return find(m, func(st *state) *Restoration { return st.restoration })
}

// restore adds a record, numbered anew.
func (st *state) restore(record []byte) Status {
	c, err := CopiedOf(record)
	if err != nil {
		return Conflict
	}
	// A restoration may have begun with the key that is being retired meanwhile.
	if st.levelNow() >= LevelRekey && !st.wrapped(c.secret()) {
		return OtherKey
	}
	switch {
	case c.Tenant != nil:
		if known := st.tenants[c.Tenant.ID]; known != nil {
			if known.record.Name != c.Tenant.Name {
				return Conflict
			}
			return Done
		}
		c.Tenant.Seq = st.next()
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

// secret gives what the cluster's key has wrapped of a record.
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
