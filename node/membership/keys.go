package membership

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// keysMax is the most keys in a ring.
const keysMax = 16

var errKeys = errors.New("gossip wants keys of 32 bytes, 1 to 16 of them")

func checkKeys(keys [][]byte) error {
	if len(keys) == 0 || len(keys) > keysMax || slices.ContainsFunc(keys, func(k []byte) bool { return len(k) != KeyBytes }) {
		return errKeys
	}
	return nil
}

// ChangeKeys replaces the present keys. From now on the first key encrypts, and all
// keys decrypt. A key is replaced without a pause in three steps, each on every
// node: decrypt with the new key too, encrypt with it, forget the old key.
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
	// The loop runs from the last key to the first. When memberlist removes a key,
	// it shifts the keys behind it while other goroutines may be decrypting with
	// them.
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
