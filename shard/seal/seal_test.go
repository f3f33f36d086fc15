package seal_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"facet/internal/must"
	"facet/shard/seal"
)

const (
	// oldWrapped is "secret" for "gallery", wrapped by the master of 32 bytes 1.
	oldWrapped = "01f485522fb241aef43dd9da2f9b34208a96dec0b7db889ff68a9522e29b40d4512bbceb466c3d"
	oldMAC     = "2a17cb0862d142e632a89567a05ad9ac757db39583ee2af8b0883eff26b182d3"
)

func key(t testing.TB, fill byte) *seal.Key {
	t.Helper()
	k, err := seal.NewKey(bytes.Repeat([]byte{fill}, seal.KeyBytes))
	must.Do(t, err)
	return k
}

func master(t testing.TB, fill byte) *seal.Master {
	t.Helper()
	m, err := seal.NewMaster(bytes.Repeat([]byte{fill}, seal.KeyBytes))
	must.Do(t, err)
	return m
}

func TestSealedTextNeedsKeyAndPlace(t *testing.T) {
	t.Parallel()
	k := key(t, 1)
	sealed := k.Seal([]byte("plain"), []byte("place"))
	if len(sealed) != len("plain")+seal.Overhead {
		t.Errorf("sealed to %d bytes, want %d", len(sealed), len("plain")+seal.Overhead)
	}
	if got, err := k.Open(sealed, []byte("place")); err != nil || string(got) != "plain" {
		t.Fatalf("got %q, %v", got, err)
	}
	f := func(name string, k *seal.Key, sealed []byte, aad string) {
		t.Helper()
		if got, err := k.Open(sealed, []byte(aad)); !errors.Is(err, seal.ErrOpen) || got != nil {
			t.Errorf("%s: got %q, %v, want ErrOpen", name, got, err)
		}
	}
	f("another key", key(t, 2), sealed, "place")
	f("another place", k, sealed, "elsewhere")
	f("cut", k, sealed[:len(sealed)-1], "place")
	f("nothing", k, nil, "place")
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 0x80
		f("changed", k, bad, "place")
	}
}

func TestSealUsesFreshNonce(t *testing.T) {
	t.Parallel()
	k, m := key(t, 1), master(t, 1)
	if bytes.Equal(k.Seal([]byte("x"), nil), k.Seal([]byte("x"), nil)) {
		t.Error("two seals are equal: the nonce does not change")
	}
	if bytes.Equal(m.Wrap([]byte("x"), nil), m.Wrap([]byte("x"), nil)) {
		t.Error("two wrappings are equal: the nonce does not change")
	}
}

func TestKeyOfWrongLengthIsRefused(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 16, 31, 33} {
		if _, err := seal.NewKey(make([]byte, n)); !errors.Is(err, seal.ErrKey) {
			t.Errorf("key of %d bytes: got %v, want ErrKey", n, err)
		}
		if _, err := seal.NewMaster(make([]byte, n)); !errors.Is(err, seal.ErrKey) {
			t.Errorf("master of %d bytes: got %v, want ErrKey", n, err)
		}
	}
}

func TestWrappedSecretNeedsMasterAndPlace(t *testing.T) {
	t.Parallel()
	m := master(t, 1)
	wrapped := m.Wrap([]byte("secret"), []byte("gallery"))
	if got, err := m.Unwrap(wrapped, []byte("gallery")); err != nil || string(got) != "secret" {
		t.Fatalf("got %q, %v", got, err)
	}
	// What was wrapped by an earlier build has to open for ever.
	old, err := hex.DecodeString(oldWrapped)
	must.Do(t, err)
	if got, err := m.Unwrap(old, []byte("gallery")); err != nil || string(got) != "secret" {
		t.Errorf("golden bytes: got %q, %v", got, err)
	}
	f := func(name string, m *seal.Master, wrapped []byte, aad string) {
		t.Helper()
		if got, err := m.Unwrap(wrapped, []byte(aad)); !errors.Is(err, seal.ErrOpen) || got != nil {
			t.Errorf("%s: got %q, %v, want ErrOpen", name, got, err)
		}
	}
	f("another master", master(t, 2), wrapped, "gallery")
	f("another place", m, wrapped, "key")
	for i := range wrapped {
		f("cut", m, wrapped[:i], "gallery")
		bad := bytes.Clone(wrapped)
		bad[i] ^= 1
		f("changed", m, bad, "gallery")
	}
}

func TestMasterCopiesSecret(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte{1}, seal.KeyBytes)
	m, err := seal.NewMaster(secret)
	must.Do(t, err)
	clear(secret)
	if got, want := m.MAC("p", []byte("d")), master(t, 1).MAC("p", []byte("d")); got != want {
		t.Fatalf("MAC after the caller cleared its bytes: got %x, want %x", got, want)
	}
}

func TestMACsDependOnMasterPurposeAndData(t *testing.T) {
	t.Parallel()
	base := master(t, 1).MAC("api key", []byte("data"))
	// HMAC-SHA-256 under HKDF-SHA-256(secret, info "facet/mac/1/api key"), computed
	// with another implementation.
	if got := hex.EncodeToString(base[:]); got != oldMAC {
		t.Errorf("got %s, want %s", got, oldMAC)
	}
	for name, other := range map[string][32]byte{
		"master":  master(t, 2).MAC("api key", []byte("data")),
		"purpose": master(t, 1).MAC("api kez", []byte("data")),
		"data":    master(t, 1).MAC("api key", []byte("date")),
	} {
		if other == base {
			t.Errorf("another %s gives the same MAC", name)
		}
	}
}

func secretOf(fill byte) []byte { return bytes.Repeat([]byte{fill}, seal.KeyBytes) }

func TestRingWrapsWithFirstKey(t *testing.T) {
	t.Parallel()
	m := master(t, 1)
	old := m.Wrap([]byte("secret"), []byte("gallery"))
	oldKey := m.MAC("p", []byte("d"))
	f := func(name string, secrets [][]byte, current, opens bool, macs int) {
		t.Helper()
		if err := m.Change(secrets); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := m.Current(old); got != current {
			t.Errorf("%s: what the old key wrapped is current: got %t", name, got)
		}
		if plain, err := m.Unwrap(old, []byte("gallery")); (err == nil) != opens || opens && string(plain) != "secret" {
			t.Errorf("%s: got %q, %v", name, plain, err)
		}
		if again := m.Wrap([]byte("x"), nil); !m.Current(again) {
			t.Errorf("%s: what is wrapped now is not current", name)
		}
		if got := m.MACs("p", []byte("d")); len(got) != macs || got[0] != m.MAC("p", []byte("d")) || opens && got[len(got)-1] != oldKey && got[0] != oldKey {
			t.Errorf("%s: got %d MACs", name, len(got))
		}
	}
	f("added", [][]byte{secretOf(1), secretOf(2)}, true, true, 2)
	f("used", [][]byte{secretOf(2), secretOf(1)}, false, true, 2)
	f("retired", [][]byte{secretOf(2)}, false, false, 1)
	if err := m.Change(nil); !errors.Is(err, seal.ErrKey) {
		t.Errorf("no key: got %v", err)
	}
	if err := m.Change([][]byte{secretOf(2), make([]byte, 3)}); !errors.Is(err, seal.ErrKey) || !m.Current(m.Wrap(nil, nil)) {
		t.Errorf("a short key: got %v", err)
	}
}
