// Package secrets names the purposes for which the cluster's key wraps secrets of meta's records,
// and wraps them again when that key is replaced.
package secrets

import (
	"errors"
	"fmt"

	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
	"facet/shard/seal"
)

// Purposes for which the cluster's master secret wraps and authenticates. Stored
// bytes depend on them.
const (
	PurposeAPIKey = "api-key"
	PurposeSecret = "access-key-secret"
	PurposeData   = "gallery-data-key"
	PurposeSigner = "receipt-signer"
	PurposeAudit  = "audit-key"
)

// Rewrap replaces the master key under the records of meta. It unwraps secrets with
// From and wraps them with To. The two may be equal.
type Rewrap struct{ From, To *seal.Master }

// Record rewraps the secrets of a record in place. The error wraps seal.ErrOpen.
func (w Rewrap) Record(c metafsm.Copied) error {
	var err error
	switch {
	case c.Gallery != nil:
		c.Gallery.WrappedKey, _, err = w.secret(c.Gallery.WrappedKey, PurposeData+c.Gallery.ID.String())
	case c.AccessKey != nil && len(c.AccessKey.SealedSecret) > 0: // a revoked key has none
		c.AccessKey.SealedSecret, _, err = w.secret(c.AccessKey.SealedSecret, PurposeSecret+c.AccessKey.ID)
	case c.Application != nil:
		var key []byte
		c.Application.SealedKey, key, err = w.secret(c.Application.SealedKey, PurposeAPIKey+c.Application.ID.String())
		c.Application.KeyMAC = w.To.MAC(PurposeAPIKey, key)
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

// errNothing is returned for a secret that belongs to no record.
var errNothing = errors.New("a secret of nothing")

// Secret rewraps a secret that an older key of the ring has wrapped. It sets New
// and, for an application, KeyMAC. old is false when the first key of the ring has
// wrapped the secret. The error wraps seal.ErrOpen.
func (w Rewrap) Secret(s *metafsm.Rekeyed) (old bool, err error) {
	if w.To.Current(s.Old) {
		return false, nil
	}
	var key []byte
	switch {
	case !s.Gallery.IsZero():
		s.New, _, err = w.secret(s.Old, PurposeData+s.Gallery.String())
	case s.AccessKey != "":
		s.New, _, err = w.secret(s.Old, PurposeSecret+s.AccessKey)
	case !s.Audit.IsZero():
		s.New, _, err = w.secret(s.Old, PurposeAudit+s.Audit.String())
	case s.Signer:
		s.New, _, err = w.secret(s.Old, PurposeSigner)
	case !s.Application.IsZero():
		s.New, key, err = w.secret(s.Old, PurposeAPIKey+s.Application.String())
		s.KeyMAC = w.To.MAC(PurposeAPIKey, key)
	default:
		err = errNothing
	}
	if err != nil {
		return true, fmt.Errorf("rewrap a secret: %w", err)
	}
	return true, nil
}

// ErrRetired is returned when the cluster's key was replaced after a secret was
// wrapped and before it arrived at meta.
var ErrRetired = &router.Error{Kind: router.Unavailable, Message: "the cluster's key was replaced meanwhile; try again", RetryAfter: calls.RetryLater}

// WithRotationRetry calls do, which wraps a secret. It calls do again when the key
// was replaced meanwhile: by then this node wraps with the new key
// (metafsm.OtherKey).
func WithRotationRetry[T any](do func() (T, error)) (T, error) {
	made, err := do()
	if errors.Is(err, ErrRetired) {
		return do()
	}
	return made, err
}
