package metafsm

import (
	"reflect"

	"facet/internal/id"
)

// PutAccessKey adds an access key, or replaces it. Created and Used
// stay. The status is Done, UnknownTenant, OtherKey, OverAccessKeys, or Conflict if
// another tenant has the key.
type PutAccessKey struct {
	Key AccessKey `cbor:"1,keyasint"`
}

func (c PutAccessKey) apply(m *Machine) Status {
	k := c.Key
	old := m.state.keys[k.ID]
	switch {
	case m.state.tenants[k.Tenant] == nil || m.state.deleting(k.Tenant):
		return UnknownTenant
	case !m.state.wrapped(k.SealedSecret):
		return OtherKey
	case old != nil && old.Tenant != k.Tenant:
		return Conflict
	case old != nil:
		k.Created, k.Used = old.Created, old.Used
		if reflect.DeepEqual(*old, k) {
			return Done
		}
	}
	if k.State == KeyLive && (old == nil || old.State != KeyLive) && m.beyond(m.state.tenants[k.Tenant], QuotaAccessKeys, 1) {
		return OverAccessKeys
	}
	m.state.keys[k.ID] = &k
	m.touch()
	return Done
}

// DeleteAccessKey removes an access key of a tenant. The status is Done, also if there
// is no such key, or Conflict if another tenant has it.
type DeleteAccessKey struct {
	Tenant id.Tenant `cbor:"1,keyasint"`
	Key    string    `cbor:"2,keyasint"`
}

func (c DeleteAccessKey) apply(m *Machine) Status {
	switch k := m.state.keys[c.Key]; {
	case k == nil:
	case k.Tenant != c.Tenant:
		return Conflict
	default:
		delete(m.state.keys, c.Key)
		m.touch()
	}
	return Done
}

// NoteKeyUses notes when access keys were used. The status is Done. A key that is gone, revoked or
// was used later has no part in it.
type NoteKeyUses struct {
	Uses []KeyUse `cbor:"1,keyasint"`
}

// KeyUse is a use of an access key.
type KeyUse struct {
	Key string `cbor:"1,keyasint"`
	At  int64  `cbor:"2,keyasint"` // in milliseconds since 1970
}

func (c NoteKeyUses) apply(m *Machine) Status {
	for _, u := range c.Uses {
		old := m.state.keys[u.Key]
		if old == nil || old.State != KeyLive || u.At <= old.Used {
			continue
		}
		k := *old
		k.Used = u.At
		m.state.keys[u.Key] = &k
		m.touch()
	}
	return Done
}
