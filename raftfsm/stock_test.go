package raftfsm

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/transport"
)

// stock is hashicorp/raft with its own transport, bolt file and snapshot files. Tests show
// its bugs, and that a Group does not have them.
type stock struct {
	*raft.Raft
	name    id.Member
	journal *journal
	disk    *slowDisk
}

// bare lets raft use wires as they are.
type bare struct{ transport.StreamLayer }

func (b bare) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return b.StreamLayer.Dial(ctx, string(target))
}

// plain lets raft drive a journal directly.
type plain struct{ *journal }

func (p plain) Apply(l *raft.Log) any { return p.journal.Apply(l.Index, l.Data) }

func (p plain) Restore(r io.ReadCloser) error { return p.journal.Restore(r) }

func (p plain) Snapshot() (raft.FSMSnapshot, error) {
	f, err := p.Freeze()
	return plainFrozen{f}, err
}

type plainFrozen struct{ Frozen }

func (p plainFrozen) Persist(sink raft.SnapshotSink) error {
	_, err := p.WriteTo(sink)
	return err
}

// openStock starts a member of a stock group with the timing of a Group.
func openStock(t *testing.T, w *wires, name id.Member, voters []id.Member) *stock {
	t.Helper()
	dir := filepath.Join(t.TempDir(), string(name))
	files, err := raft.NewFileSnapshotStoreWithLogger(dir, 2, hclog.NewNullLogger())
	must.Do(t, err)
	bolt, err := openUnsynced(dir)
	must.Do(t, err)
	s := &stock{name: name, journal: newJournal(), disk: newSlowDisk(bolt)}
	stable := raft.NewInmemStore() // it is not restarted
	trans := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: bare{w.listen(string(name))}, MaxPool: 3, Timeout: transport.Timeout, Logger: hclog.NewNullLogger(),
	})
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(name)
	conf.HeartbeatTimeout, conf.ElectionTimeout = heartbeatDefault, electionDefault
	conf.LeaderLeaseTimeout = leaseDefault
	conf.TrailingLogs = 5
	conf.Logger = hclog.NewNullLogger()
	if len(voters) > 0 {
		var c raft.Configuration
		for _, v := range voters {
			c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(v), Address: raft.ServerAddress(v)})
		}
		must.Do(t, raft.BootstrapCluster(conf, s.disk, stable, files, trans, c))
	}
	if s.Raft, err = raft.NewRaft(conf, plain{s.journal}, s.disk, stable, files, trans); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stopped := s.Shutdown()
		trans.Close()
		if err := stopped.Error(); err != nil {
			t.Error(err)
		}
		trans.CloseStreams()
		if err := bolt.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// openStocks starts a group of three members.
func openStocks(t *testing.T, w *wires) []*stock {
	t.Helper()
	var all []*stock
	for _, name := range names(3) {
		all = append(all, openStock(t, w, name, names(3)))
	}
	return all
}

// leaderOf waits for the leader among members. Call it in virtual time.
func leaderOf(t *testing.T, members []*stock, but *stock) *stock {
	t.Helper()
	for range 3000 {
		for _, s := range members {
			if s != but && s.State() == raft.Leader {
				return s
			}
		}
		pause()
	}
	t.Fatal("no leader within 30 s")
	return nil
}
