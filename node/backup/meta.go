package backup

import (
	"fmt"
	"io"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/shard/seal"
)

// metaCopier writes meta's part. A backup of chosen galleries has these and their tenants,
// and no access keys.
type metaCopier struct {
	out    *partWriter
	want   chosen
	master *seal.Master
	// checkpoint returns the signed checkpoint of a tenant's audit log, or nil if the tenant has none.
	checkpoint func(tenant id.Tenant) ([]byte, error)
}

// opens reports whether the key that seals the backup can open a record's secret. During a
// change of the cluster's key, some secrets are still wrapped by the previous key.
func (m metaCopier) opens(c metafsm.Copied) bool {
	var secret []byte
	switch {
	case c.AccessKey != nil:
		secret = c.AccessKey.SealedSecret
	case c.Gallery != nil:
		secret = c.Gallery.WrappedKey
	case c.Application != nil:
		secret = c.Application.SealedKey
	}
	return len(secret) == 0 || m.master.Current(secret)
}

// copy writes meta's part and releases its state s.
func (m metaCopier) copy(s State, end partEnd) (Part, []metafsm.GrantsOf, error) {
	want := m.want
	var part Part
	var grants []metafsm.GrantsOf
	tenants := map[id.Tenant]metafsm.Copied{} // not written yet
	found := 0
	write := func(c metafsm.Copied) error {
		if !m.opens(c) {
			return ErrKeyChanges
		}
		part.Records++
		return m.out.record(c.Encode())
	}
	take := func(c metafsm.Copied) error {
		if c.Tenant != nil {
			if err := m.note(c.Tenant); err != nil {
				return err
			}
		}
		switch {
		case want == nil:
		case c.Tenant != nil:
			tenants[c.Tenant.ID] = c
			return nil
		case c.AccessKey != nil, c.Gallery != nil && !want[c.Gallery.ID], c.Grants != nil && !want[c.Grants.Gallery],
			c.Tags != nil && !want[c.Tags.Gallery], c.Application != nil && !want[c.Application.Gallery]:
			return nil
		case c.Gallery != nil:
			found++
			if t, ok := tenants[c.Gallery.Tenant]; ok {
				delete(tenants, c.Gallery.Tenant)
				if err := write(t); err != nil {
					return err
				}
			}
		}
		if c.Grants != nil {
			grants = append(grants, *c.Grants)
		}
		return write(c)
	}
	err := stream(s, func(r io.Reader) error { return metafsm.ReadAllCopied(r, take) })
	if err == nil && want != nil && found != len(want) {
		err = fmt.Errorf("%d of the %d galleries are there", found, len(want))
	}
	if err != nil {
		return Part{}, nil, err
	}
	part, err = part.finish(m.out, end)
	return part, grants, err
}
