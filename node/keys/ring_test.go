package keys

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
	"facet/shard/seal"
)

func hexOf(fill string) string { return strings.Repeat(fill, seal.KeyBytes) }

func TestRingChangesOnDiskFirst(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "some.key")
	must.Do(t, os.WriteFile(file, []byte(hexOf("01")+"\n"), 0o600))
	r, err := openRing(t.Context(), Source{File: file})
	must.Do(t, err)
	var applied [][]byte
	r.apply = func(secrets [][]byte) error {
		onDisk, err := readRing(t.Context(), Source{File: file})
		if err != nil || !cmp.Equal(secretsOf(onDisk), secrets) {
			t.Errorf("applied %x, on disk %v, %v", secrets, onDisk, err)
		}
		applied = secrets
		return nil
	}
	next := ringKey{secret: bytes.Repeat([]byte{2}, seal.KeyBytes), since: time.Now().Truncate(time.Second)}
	f := func(s ringStep, want string) {
		t.Helper()
		o := ringOrder{Step: s, Key: next.id(), Since: next.since}
		if s == ringAdd {
			o.Secret = next.secret
		}
		for range 2 { // a step that was done before changes nothing
			if _, err := r.step(o); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		for _, secret := range applied {
			got += string('0' + rune(secret[0]))
		}
		if got != want {
			t.Errorf("%s: got keys %s, want %s", s, got, want)
		}
	}
	f(ringAdd, "12")
	f(ringUse, "21")
	f(ringRetire, "2")
	again, err := openRing(t.Context(), Source{File: file})
	if err != nil || len(again.keys) != 1 || !again.keys[0].since.Equal(next.since) {
		t.Errorf("from the file: %v, %v", again, err)
	}
}

func TestStepWithUnknownKeyIsRefused(t *testing.T) {
	t.Parallel()
	have, other := ringKey{secret: bytes.Repeat([]byte{1}, 32)}, ringKey{secret: bytes.Repeat([]byte{2}, 32)}
	for _, o := range []ringOrder{
		{Step: ringUse, Key: other.id()},
		{Step: ringRetire, Key: other.id()},
		{Step: ringAdd, Key: other.id()},                          // the key itself is missing
		{Step: ringAdd, Key: other.id(), Secret: have.secret},     // another one's name
		{Step: ringAdd, Key: other.id(), Secret: make([]byte, 5)}, // too short
		{Step: ringRetire, Key: ""},                               // no key at all
	} {
		if _, err := stepped([]ringKey{have}, o); !errors.Is(err, errNoKey) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}

func TestUnwritableKeyFileKeepsRing(t *testing.T) {
	t.Parallel()
	r := &ring{source: Source{File: filepath.Join(t.TempDir(), "gone", "some.key")}, keys: []ringKey{{secret: bytes.Repeat([]byte{1}, 32)}}}
	r.apply = func([][]byte) error { t.Error("applied"); return nil }
	k := ringKey{secret: bytes.Repeat([]byte{2}, 32)}
	if _, err := r.step(ringOrder{Step: ringAdd, Key: k.id(), Secret: k.secret}); err == nil || len(r.keys) != 1 {
		t.Errorf("got %v, %d keys", err, len(r.keys))
	}
}

func FuzzParseRing(f *testing.F) {
	f.Add([]byte(hexOf("01")))
	f.Add([]byte(hexOf("01") + " 2026-01-02T03:04:05Z\n" + hexOf("02") + "\n"))
	f.Add([]byte(hexOf("01") + " yesterday"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		keys, err := parseRing(raw)
		if err != nil {
			return
		}
		again, err := parseRing(formatRing(keys))
		if err != nil || len(keys) == 0 || len(keys) > ringMax || !cmp.Equal(secretsOf(keys), secretsOf(again)) {
			t.Errorf("%q: %d keys, again %d, %v", raw, len(keys), len(again), err)
		}
	})
}
