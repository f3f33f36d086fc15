package raftfsm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"facet/raftfsm/snapshots"
)

func TestEntryComesBackAsItWasProposed(t *testing.T) {
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

func TestEntryBytesAreThoseOfTheFormat(t *testing.T) {
	t.Parallel()
	// docs/formats/log-entry.md shows these bytes.
	want := []byte{1, 1, 0xf1, 0x16, 0x9b, 0xad, 'h', 'i'}
	if diff := cmp.Diff(want, encodeEntry(7, kindCommand, []byte("hi"))); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
}

func TestAnyFlippedBitOfAnEntryIsFound(t *testing.T) {
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

func TestEntryOfANewerReleaseIsNotCalledCorrupt(t *testing.T) {
	t.Parallel()
	_, _, err := decodeEntry(7, encodeEntry(7, kindCommand+1, []byte("x")))
	if err == nil || errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want an error that is not ErrCorrupt", err)
	}
}

func FuzzDecodeEntryTakesOnlyWhatEncodeEntryGives(f *testing.F) {
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

func TestMessagesThatRaftWouldNotSurviveAreRefused(t *testing.T) {
	t.Parallel()
	good := func() *raft.AppendEntriesRequest {
		return &raft.AppendEntriesRequest{Term: 5, PrevLogEntry: 3, Entries: []*raft.Log{
			{Index: 4, Term: 5, Type: raft.LogNoop},
			{Index: 5, Term: 5, Type: raft.LogCommand, Data: encodeEntry(7, kindCommand, []byte("x"))},
			{Index: 6, Term: 5, Type: raft.LogConfiguration, Data: configuration("member-a")},
		}}
	}
	if err := checkRPC(7, good()); err != nil {
		t.Fatalf("a sound message: %v", err)
	}
	f := func(what string, spoil func(*raft.AppendEntriesRequest)) {
		t.Helper()
		q := good()
		spoil(q)
		if err := checkRPC(7, q); err == nil {
			t.Errorf("%s was not refused", what)
		}
	}
	f("no entry", func(q *raft.AppendEntriesRequest) { q.Entries[1] = nil })
	f("a gap", func(q *raft.AppendEntriesRequest) { q.Entries[1].Index++ })
	f("a term from the future", func(q *raft.AppendEntriesRequest) { q.Entries[1].Term++ })
	f("a flipped bit", func(q *raft.AppendEntriesRequest) { q.Entries[1].Data[6] ^= 1 })
	f("an unknown type", func(q *raft.AppendEntriesRequest) { q.Entries[1].Type = 99 })
	f("an old type", func(q *raft.AppendEntriesRequest) { q.Entries[1].Type = raft.LogAddPeerDeprecated })
	f("a configuration of junk", func(q *raft.AppendEntriesRequest) { q.Entries[2].Data = []byte{0xc1} })
	f("an empty configuration", func(q *raft.AppendEntriesRequest) { q.Entries[2].Data = configuration() })
	f("too many entries", func(q *raft.AppendEntriesRequest) { q.Entries = make([]*raft.Log, appendEntriesMax+1) })

	g := func(what string, q raft.InstallSnapshotRequest) {
		t.Helper()
		if err := checkRPC(7, &q); err == nil {
			t.Errorf("%s was not refused", what)
		}
	}
	g("a snapshot of version 0", raft.InstallSnapshotRequest{Configuration: configuration("member-a")})
	g("a snapshot without members", raft.InstallSnapshotRequest{SnapshotVersion: 1, Configuration: []byte{0xc1}})
	g("an endless snapshot", raft.InstallSnapshotRequest{
		SnapshotVersion: 1, Configuration: configuration("member-a"), Size: snapshots.BytesMax + 1,
	})
}

func configuration(members ...string) []byte {
	var c raft.Configuration
	for _, m := range members {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(m), Address: raft.ServerAddress(m)})
	}
	return raft.EncodeConfiguration(c)
}

func FuzzCheckConfigurationNeverPanics(f *testing.F) {
	f.Add(configuration("member-a", "member-b"))
	f.Add([]byte{})
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if checkConfiguration(b) == nil && len(raft.DecodeConfiguration(b).Servers) == 0 {
			t.Error("a configuration without members was taken")
		}
	})
}
