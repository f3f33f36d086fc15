package metafsm

import (
	"fmt"
	"io"

	"facet/internal/codec"
	"facet/internal/id"
)

// GrantsOf holds the grants of a gallery, in snapshots and backups.
type GrantsOf struct {
	Gallery id.Gallery   `cbor:"1,keyasint"`
	Grants  []ShardGrant `cbor:"2,keyasint"` // in order of shards
}

// Copied is one record of meta in a backup. Exactly one field is set.
type Copied struct {
	Cluster     *Cluster
	Tenant      *Tenant
	AccessKey   *AccessKey
	Gallery     *Gallery
	Grants      *GrantsOf
	Tags        *TagSet
	Application *Application
}

// readCopied converts a record of a snapshot. ok is false for a record that no backup
// keeps: nodes, shards and operations belong to one cluster. The error wraps
// codec.ErrMalformed.
func readCopied(m codec.Message) (c Copied, ok bool, err error) {
	switch m.Code {
	case headState.Code:
		var r stateRecord
		err = m.Decode(headState, &r)
		if c.Cluster = r.Cluster; c.Cluster != nil {
			c.Cluster.Signer, c.Cluster.AuditKey = Signer{}, nil
		}
		return c, err == nil && c.Cluster != nil, err
	case headTenant.Code:
		if err = decode(m, headTenant, &c.Tenant); err == nil {
			c.Tenant.Audit.WrappedKey = nil
		}
	case headAccessKey.Code:
		err = decode(m, headAccessKey, &c.AccessKey)
	case headGallery.Code:
		err = decode(m, headGallery, &c.Gallery)
	case headGrants.Code:
		err = decode(m, headGrants, &c.Grants)
	case headTags.Code:
		err = decode(m, headTags, &c.Tags)
	case headApplication.Code:
		err = decode(m, headApplication, &c.Application)
	default:
		return c, false, nil
	}
	return c, err == nil, err
}

// decode sets *field to a new record with the body of m.
func decode[T any](m codec.Message, h codec.Head, field **T) error {
	*field = new(T)
	return m.Decode(h, *field)
}

// Encode returns the bytes of the record, for Load.
func (c Copied) Encode() []byte {
	switch {
	case c.Cluster != nil:
		return codec.Encode(headState, stateRecord{Cluster: c.Cluster})
	case c.Tenant != nil:
		return codec.Encode(headTenant, c.Tenant)
	case c.AccessKey != nil:
		return codec.Encode(headAccessKey, c.AccessKey)
	case c.Gallery != nil:
		return codec.Encode(headGallery, c.Gallery)
	case c.Grants != nil:
		return codec.Encode(headGrants, c.Grants)
	case c.Tags != nil:
		return codec.Encode(headTags, c.Tags)
	case c.Application != nil:
		return codec.Encode(headApplication, c.Application)
	default:
		panic("bug: a record without content")
	}
}

// ReadAllCopied reads the snapshot that a Frozen wrote to r. It calls take with each
// record that a backup keeps, except galleries and tenants under deletion. It returns a wrapped
// codec.ErrCorrupt or codec.ErrMalformed, or the first error of r or take.
func ReadAllCopied(r io.Reader, take func(Copied) error) error {
	_, err := codec.ReadAll(r, magic, func(record codec.Message) error {
		c, ok, err := readCopied(record)
		if err != nil || !ok || c.Gallery != nil && c.Gallery.Deleting || c.Tenant != nil && c.Tenant.State == TenantDeleting {
			return err
		}
		return take(c)
	})
	if err != nil {
		return fmt.Errorf("copy meta: %w", err)
	}
	return nil
}

// CopiedOf decodes the result of Copied.Encode. The error wraps codec.ErrMalformed.
func CopiedOf(b []byte) (Copied, error) {
	m, err := codec.Split(b)
	if err != nil {
		return Copied{}, err
	}
	c, ok, err := readCopied(m)
	if err == nil && !ok {
		err = fmt.Errorf("%w: a backup has no record %d", codec.ErrMalformed, m.Code)
	}
	return c, err
}
