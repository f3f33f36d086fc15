package transport

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"facet/raftfsm/snapshots"
)

// isSound replaces the group's check of a command.
func isSound(entry []byte) error {
	if string(entry) != "sound" {
		return errors.New("damaged")
	}
	return nil
}

func TestHarmfulMessagesAreRefused(t *testing.T) {
	t.Parallel()
	good := func() *raft.AppendEntriesRequest {
		return &raft.AppendEntriesRequest{Term: 5, PrevLogEntry: 3, Entries: []*raft.Log{
			{Index: 4, Term: 5, Type: raft.LogNoop},
			{Index: 5, Term: 5, Type: raft.LogCommand, Data: []byte("sound")},
			{Index: 6, Term: 5, Type: raft.LogConfiguration, Data: configuration("member-a")},
		}}
	}
	if err := checkRPC(isSound, good()); err != nil {
		t.Fatalf("a sound message: %v", err)
	}
	f := func(what string, spoil func(*raft.AppendEntriesRequest)) {
		t.Helper()
		q := good()
		spoil(q)
		if err := checkRPC(isSound, q); err == nil {
			t.Errorf("%s was not refused", what)
		}
	}
	f("no entry", func(q *raft.AppendEntriesRequest) { q.Entries[1] = nil })
	f("a gap", func(q *raft.AppendEntriesRequest) { q.Entries[1].Index++ })
	f("a term from the future", func(q *raft.AppendEntriesRequest) { q.Entries[1].Term++ })
	f("a flipped bit", func(q *raft.AppendEntriesRequest) { q.Entries[1].Data[0] ^= 1 })
	f("an unknown type", func(q *raft.AppendEntriesRequest) { q.Entries[1].Type = 99 })
	f("an old type", func(q *raft.AppendEntriesRequest) { q.Entries[1].Type = raft.LogAddPeerDeprecated })
	f("a configuration of junk", func(q *raft.AppendEntriesRequest) { q.Entries[2].Data = []byte{0xc1} })
	f("an empty configuration", func(q *raft.AppendEntriesRequest) { q.Entries[2].Data = configuration() })
	f("too many entries", func(q *raft.AppendEntriesRequest) { q.Entries = make([]*raft.Log, EntriesMax+1) })

	g := func(what string, q raft.InstallSnapshotRequest) {
		t.Helper()
		if err := checkRPC(isSound, &q); err == nil {
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
