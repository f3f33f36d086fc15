package raftfsm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEntryRoundTrips(t *testing.T) {
	t.Parallel()
	f := func(kind entryKind, payload string) {
		t.Helper()
		gotKind, got, err := decodeEntry(7, encodeEntry(7, kind, []byte(payload)))
		if err != nil || gotKind != kind || string(got) != payload {
			t.Errorf("got kind %d, %q, %v", gotKind, got, err)
		}
	}
	f(kindMarker, "")
	f(kindCommand, "")
	f(kindCommand, "enrol")
	f(kindCommand, string(make([]byte, CommandBytesMax)))
}

func TestEntryBytesMatchFormat(t *testing.T) {
	t.Parallel()
	// format.md shows these bytes.
	want := []byte{1, 1, 0xf1, 0x16, 0x9b, 0xad, 'h', 'i'}
	if diff := cmp.Diff(want, encodeEntry(7, kindCommand, []byte("hi"))); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
}

func TestEntryDetectsFlippedBit(t *testing.T) {
	t.Parallel()
	entry := encodeEntry(7, kindCommand, []byte("a command of some length"))
	for i := range len(entry) * 8 {
		b := bytes.Clone(entry)
		b[i/8] ^= 1 << (i % 8)
		if _, _, err := decodeEntry(7, b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("bit %d flipped: got %v, want ErrCorrupt", i, err)
		}
	}
	for n := range len(entry) {
		if _, _, err := decodeEntry(7, entry[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d bytes: got %v, want ErrCorrupt", n, err)
		}
	}
	if _, _, err := decodeEntry(8, entry); !errors.Is(err, ErrCorrupt) {
		t.Errorf("in another group: got %v, want ErrCorrupt", err)
	}
}

func TestNewerEntryIsNotCorrupt(t *testing.T) {
	t.Parallel()
	_, _, err := decodeEntry(7, encodeEntry(7, kindCommand+1, []byte("x")))
	if err == nil || errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want an error that is not ErrCorrupt", err)
	}
}

func FuzzDecodeEntryInvertsEncode(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeEntry(7, kindMarker, nil))
	f.Add(encodeEntry(7, kindCommand, []byte("enrol")))
	f.Add(bytes.Repeat([]byte{1}, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, payload, err := decodeEntry(7, b)
		if err == nil && !bytes.Equal(encodeEntry(7, kind, payload), b) {
			t.Errorf("%x decodes to kind %d, %x, which encodes otherwise", b, kind, payload)
		}
	})
}
