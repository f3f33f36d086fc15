package membership

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// keysMax bounds the keys of a ring.
const keysMax = 16

var errKeys = errors.New("gossip wants keys of 32 bytes, 1 to 16 of them")

func checkKeys(keys [][]byte) error {
	if len(keys) == 0 || len(keys) > keysMax || slices.ContainsFunc(keys, func(k []byte) bool { return len(k) != KeyBytes }) {
		return errKeys
	}
	return nil
}

// ChangeKeys puts other keys in the place of the present ones: the first encrypts from
// now on, all decrypt. To replace a key without a pause, every node first has to
// decrypt with the new one, then encrypt with it, and only then forget the old one.
func (m *Membership) ChangeKeys(keys [][]byte) error {
	if err := checkKeys(keys); err != nil {
		return err
	}
	for _, k := range keys {
		if err := m.keys.AddKey(bytes.Clone(k)); err != nil {
			return fmt.Errorf("add a gossip key: %w", err)
		}
	}
	if err := m.keys.UseKey(keys[0]); err != nil {
		return fmt.Errorf("use a gossip key: %w", err)
	}
	// From the last one on: memberlist shifts what stands behind a key that it removes,
	// under the eyes of who decrypts with them just then.
	for _, have := range slices.Backward(slices.Clone(m.keys.GetKeys())) {
		if slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, have) }) {
			continue
		}
		if err := m.keys.RemoveKey(have); err != nil {
			return fmt.Errorf("remove a gossip key: %w", err)
		}
	}
	return nil
}
