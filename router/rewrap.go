package router

import (
	"errors"
	"fmt"

	"facet/raftfsm/metafsm"
	"facet/router/calls"
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

// errNothing says that a secret is not a record's.
var errNothing = errors.New("a secret of nothing")

// Secret fills in New, and KeyMAC where there is one, of a secret that a ring's older
// key has wrapped; old is false for one that its first key has. The error wraps
// seal.ErrOpen.
func (w Rewrap) Secret(s *metafsm.Rekeyed) (old bool, err error) {
	if w.To.Current(s.Old) {
		return false, nil
	}
	var key []byte
	switch {
	case !s.Gallery.IsZero():
		s.New, _, err = w.secret(s.Old, purposeData+s.Gallery.String())
	case s.AccessKey != "":
		s.New, _, err = w.secret(s.Old, purposeSecret+s.AccessKey)
	case !s.Application.IsZero():
		s.New, key, err = w.secret(s.Old, purposeAPIKey+s.Application.String())
		s.KeyMAC = w.To.MAC(purposeAPIKey, key)
	default:
		err = errNothing
	}
	if err != nil {
		return true, fmt.Errorf("rewrap a secret: %w", err)
	}
	return true, nil
}

// errRetired says that the cluster's key was replaced between the wrapping of a secret
// and its arrival at meta.
var errRetired = &Error{Kind: Unavailable, Message: "the cluster's key was replaced meanwhile; try again", RetryAfter: calls.RetryLater}

// withRotationRetry does what has a secret wrapped, once more if that key was retired meanwhile:
// by then this node wraps with the new one (metafsm.OtherKey).
func withRotationRetry[T any](do func() (T, error)) (T, error) {
	made, err := do()
	if errors.Is(err, errRetired) {
		return do()
	}
	return made, err
}
