package metafsm

import (
	"fmt"
	"io"

	"facet/internal/codec"
	"facet/raftfsm/operation"
)

// Restore reads a whole snapshot, and then replaces the state. On an error the state stays.
// The error is that of r, or wraps codec.ErrCorrupt, codec.ErrMalformed, ErrSnapshot,
// ErrLevel, ErrOldLevel or operation.ErrSnapshot.
func (m *Machine) Restore(r io.Reader) error {
	records, ops := loader{state: newState(), known: m.known}, operation.NewLoader(m.limits)
	index, err := codec.ReadAll(r, magic, func(record codec.Message) error { return records.load(record, ops) })
	var memory *operation.Memory
	if err == nil {
		memory, err = ops.Memory()
	}
	if err == nil && (!records.begun || records.missing != 0) {
		err = fmt.Errorf("%w: records are missing", ErrSnapshot)
	}
	if err != nil {
		return fmt.Errorf("restore meta: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index, m.ops, m.state = index, memory, records.state
	m.touch()
	return nil
}

// loader builds a state from the records of a snapshot.
type loader struct {
	state   *state
	begun   bool
	missing uint64
	known   uint32 // Machine.known; Load restores no head
}

func (l *loader) load(m codec.Message, ops *operation.Loader) error {
	if mine, err := ops.Load(m); mine {
		return err
	}
	if m.Code == headState.Code {
		return codec.Take(m, headState, l.head)
	}
	if l.missing == 0 {
		return fmt.Errorf("%w: record %d is out of place", ErrSnapshot, m.Code)
	}
	l.missing--
	switch m.Code {
	case headNode.Code:
		return codec.Take(m, headNode, l.node)
	case headTenant.Code:
		return codec.Take(m, headTenant, l.tenant)
	case headAccessKey.Code:
		return codec.Take(m, headAccessKey, l.accessKey)
	case headGallery.Code:
		return codec.Take(m, headGallery, l.gallery)
	case headGrants.Code:
		return codec.Take(m, headGrants, l.grants)
	case headTags.Code:
		return codec.Take(m, headTags, l.tags)
	case headApplication.Code:
		return codec.Take(m, headApplication, l.application)
	default:
		return fmt.Errorf("%w: unknown record %d", codec.ErrMalformed, m.Code)
	}
}

func (l *loader) head(r stateRecord) error {
	if l.begun {
		return fmt.Errorf("%w: two heads", ErrSnapshot)
	}
	if r.Level > l.known {
		return tooHigh(r.Level, l.known)
	}
	if r.Cluster != nil && r.Level < LevelFirst {
		return OldLevel("the snapshot of meta", r.Level)
	}
	l.begun, l.missing = true, r.Records
	l.state.sequence, l.state.cluster, l.state.shards = r.Sequence, r.Cluster, &r.Shards
	l.state.restoration, l.state.level = r.Restoration, r.Level
	return nil
}

func (l *loader) node(n Node) error {
	if l.state.nodes[n.ID] != nil {
		return fmt.Errorf("%w: node %s is there twice", ErrSnapshot, n.ID)
	}
	l.state.nodes[n.ID] = &n
	return nil
}

func (l *loader) tenant(t Tenant) error {
	if _, named := l.state.byName[t.Name]; named || l.state.tenants[t.ID] != nil {
		return fmt.Errorf("%w: tenant %s is there twice", ErrSnapshot, t.ID)
	}
	l.state.addTenant(t)
	return nil
}

func (l *loader) accessKey(k AccessKey) error {
	if l.state.tenants[k.Tenant] == nil || l.state.keys[k.ID] != nil {
		return fmt.Errorf("%w: an access key has no tenant or is there twice", ErrSnapshot)
	}
	l.state.keys[k.ID] = &k
	return nil
}

func (l *loader) gallery(g Gallery) error {
	t := l.state.tenants[g.Tenant]
	if t == nil || l.state.galleries[g.ID] != nil {
		return fmt.Errorf("%w: gallery %s has no tenant or is there twice", ErrSnapshot, g.ID)
	}
	if _, named := t.byName[g.Name]; named {
		return fmt.Errorf("%w: the name of gallery %s is taken", ErrSnapshot, g.ID)
	}
	l.state.addGallery(g)
	return nil
}

func (l *loader) grants(r GrantsOf) error {
	g := l.state.gallery(r.Gallery)
	wrong := fmt.Errorf("%w: the grants of gallery %s", ErrSnapshot, r.Gallery)
	if g == nil || l.state.grants[r.Gallery] != nil {
		return wrong
	}
	var sum uint64
	for i, of := range r.Grants {
		sum += uint64(of.Slots())
		if of.Reclaimed > of.Total || sum > uint64(g.Size) || i > 0 && of.Shard <= r.Grants[i-1].Shard {
			return wrong
		}
	}
	l.state.grants[r.Gallery] = r.Grants
	return nil
}

func (l *loader) tags(s TagSet) error {
	if l.state.gallery(s.Gallery) == nil || l.state.tags[s.Gallery] != nil || !s.valid() {
		return fmt.Errorf("%w: the tags of gallery %s", ErrSnapshot, s.Gallery)
	}
	l.state.tags[s.Gallery] = &s
	return nil
}

func (l *loader) application(a Application) error {
	g := l.state.gallery(a.Gallery)
	if g == nil || g.Tenant != a.Tenant || l.state.taken(a) {
		return fmt.Errorf("%w: application %s has no gallery or is there twice", ErrSnapshot, a.ID)
	}
	l.state.addApplication(a)
	return nil
}
