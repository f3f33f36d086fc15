package router

import (
	"fmt"

	"facet/raftfsm/metafsm"
	"facet/shard/seal"
)

// Rewrap changes the cluster's key under records of meta: what From has wrapped is
// wrapped by To afterwards. Nothing is lost by doing it with From as To.
type Rewrap struct{ From, To *seal.Master }

// Record rewraps the secrets of a record, in place. The error wraps seal.ErrOpen.
func (w Rewrap) Record(c metafsm.Copied) error {
	var err error
	switch {
	case c.Gallery != nil:
		c.Gallery.WrappedKey, _, err = w.secret(c.Gallery.WrappedKey, purposeData+c.Gallery.ID.String())
	case c.AccessKey != nil && len(c.AccessKey.SealedSecret) > 0: // a revoked key has none
		c.AccessKey.SealedSecret, _, err = w.secret(c.AccessKey.SealedSecret, purposeSecret+c.AccessKey.ID)
	case c.Application != nil:
		var key []byte
		c.Application.SealedKey, key, err = w.secret(c.Application.SealedKey, purposeAPIKey+c.Application.ID.String())
		c.Application.KeyMAC = w.To.MAC(purposeAPIKey, key)
	}
	if err != nil {
		return fmt.Errorf("rewrap a secret: %w", err)
	}
	return nil
}

func (w Rewrap) secret(wrapped []byte, purpose string) (again, plain []byte, err error) {
	plain, err = w.From.Unwrap(wrapped, []byte(purpose))
	if err != nil {
		return nil, nil, err
	}
	return w.To.Wrap(plain, []byte(purpose)), plain, nil
}
