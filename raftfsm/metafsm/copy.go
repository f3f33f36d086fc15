package metafsm

import (
	"errors"
	"fmt"
	"io"

	"facet/internal/codec"
	"facet/internal/id"
)

// GrantsOf are the grants of a gallery as a backup keeps them.
type GrantsOf struct {
	Gallery id.Gallery
	Grants  []ShardGrant // in order of shards
}

// Copied is one record of meta as a backup keeps it: exactly one field is set.
type Copied struct {
	Cluster     *Cluster
	Tenant      *Tenant
	AccessKey   *AccessKey
	Gallery     *Gallery
	Grants      *GrantsOf
	Tags        *Tags
	Application *Application
}

// Tags are the tags of a gallery.
type Tags struct {
	Gallery id.Gallery
	set     *tagSet
}

// ReadCopied takes a record of a snapshot; ok is false for one that belongs to the
// cluster that it was made of (nodes, shards, operations). The error wraps
// codec.ErrMalformed.
func ReadCopied(m codec.Message) (c Copied, ok bool, err error) {
	switch m.Code {
	case headState.Code:
		var r stateRecord
		r, err = body[stateRecord](m, headState)
		c.Cluster, ok = r.Cluster, r.Cluster != nil
	case headTenant.Code:
		c.Tenant, err = copied[Tenant](m, headTenant)
	case headAccessKey.Code:
		c.AccessKey, err = copied[AccessKey](m, headAccessKey)
	case headGallery.Code:
		c.Gallery, err = copied[Gallery](m, headGallery)
	case headGrants.Code:
		var r grantsRecord
		r, err = body[grantsRecord](m, headGrants)
		c.Grants = &GrantsOf{r.Gallery, r.Grants}
	case headTags.Code:
		var set *tagSet
		if set, err = copied[tagSet](m, headTags); err == nil {
			c.Tags = &Tags{set.Gallery, set}
		}
	case headApplication.Code:
		c.Application, err = copied[Application](m, headApplication)
	default:
		return Copied{}, false, nil
	}
	return c, err == nil && (ok || m.Code != headState.Code), err
}

func copied[T any](m codec.Message, h codec.Head) (*T, error) {
	v, err := body[T](m, h)
	return &v, err
}

// Encode gives the record's bytes, as Load takes them.
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
		return codec.Encode(headGrants, grantsRecord{c.Grants.Gallery, c.Grants.Grants})
	case c.Tags != nil:
		return codec.Encode(headTags, c.Tags.set)
	case c.Application != nil:
		return codec.Encode(headApplication, c.Application)
	default:
		panic("bug: a record without content")
	}
}

// ReadAllCopied reads what a Frozen wrote and hands on what a backup keeps of it,
// galleries that are being deleted excepted. The error is as of ReadCopied, or wraps
// codec.ErrCorrupt, or is r's or take's.
func ReadAllCopied(r io.Reader, take func(Copied) error) error {
	in, err := codec.NewReader(r, magic)
	if err != nil {
		return fmt.Errorf("copy meta: %w", err)
	}
	for {
		record, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("copy meta: %w", err)
		}
		c, ok, err := ReadCopied(record)
		if err == nil && ok && (c.Gallery == nil || !c.Gallery.Deleting) {
			err = take(c)
		}
		if err != nil {
			return fmt.Errorf("copy meta: %w", err)
		}
	}
}

// CopiedOf reads what Copied.Encode gave; the error wraps codec.ErrMalformed.
func CopiedOf(b []byte) (Copied, error) {
	m, err := codec.Split(b)
	if err != nil {
		return Copied{}, err
	}
	c, ok, err := ReadCopied(m)
	if err == nil && !ok {
		err = fmt.Errorf("%w: record %d is of no backup", codec.ErrMalformed, m.Code)
	}
	return c, err
}
