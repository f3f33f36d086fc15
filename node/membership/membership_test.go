package membership

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/goleak"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/cert"
	"facet/node/transport"
	"facet/node/transport/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// party is one node of a test.
type party struct {
	*Membership
	mux *transport.Mux
}

// stop ends p like a killed process: without an announcement.
func (p *party) stop(t *testing.T) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Errorf("close membership: %v", err)
	}
	if err := p.mux.Close(); err != nil {
		t.Errorf("close mux: %v", err)
	}
}

// stopAll ends the parties of a bubble. memberlist does not wait for its probes,
// and virtual time stands still when the bubble's first goroutine is done.
func stopAll(t *testing.T, parties ...*party) {
	t.Helper()
	for _, p := range parties {
		p.stop(t)
	}
	time.Sleep(30 * time.Second)
}

func nodeID(n byte) id.Node { return id.Node{UUID: id.Random([16]byte{n})} }

// world contains what the parties of a test share.
type world struct {
	ca    *cert.CA
	dir   string
	seeds []string
	label string
}

func newWorld(t *testing.T, seeds ...string) *world {
	t.Helper()
	ca, err := cert.NewCA("test")
	must.Do(t, err)
	return &world{ca: ca, dir: t.TempDir(), seeds: seeds, label: "test"}
}

// join opens node number n with that disk epoch at address.
func (w *world) join(t *testing.T, network transport.Network, n byte, epoch uint32, address string, edit ...func(*Config)) *party {
	t.Helper()
	base := filepath.Join(w.dir, fmt.Sprintf("%d", n))
	files := cert.Files{CA: filepath.Join(w.dir, "ca.pem"), Cert: base + ".pem", Key: base + ".key"}
	if _, err := cert.Ensure(files, w.ca, func() (cert.Pair, error) { return w.ca.IssueNode(nodeID(n), nil) }); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	source, err := cert.Load(files, log)
	must.Do(t, err)
	mux, err := transport.Open(t.Context(), transport.Config{Network: network, Addr: address, TLS: source.PeerConfig(), Log: log})
	must.Do(t, err)
	cfg := Config{
		Mux: mux, Seeds: w.seeds, Keys: [][]byte{make([]byte, KeyBytes)}, Label: w.label, Log: log,
		File: base + ".addresses",
		Self: Meta{Member: id.NewMember(nodeID(n), epoch), Weight: 1, Zone: fmt.Sprintf("zone %d", n)},
	}
	for _, e := range edit {
		e(&cfg)
	}
	m, err := Open(t.Context(), cfg)
	must.Do(t, err)
	return &party{m, mux}
}

// await waits until each party sees want members, and returns how long that took.
func await(t *testing.T, limit time.Duration, want int, parties ...*party) time.Duration {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for i, p := range parties {
		for {
			changed := p.Changed()
			if len(p.Members()) == want {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatalf("party %d after %v: got %d members, want %d", i, limit, len(p.Members()), want)
			}
		}
	}
	return time.Since(begin)
}

func TestThreeNodesMeetInASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, parties := three(t, memnet.New(1))
		for _, p := range parties {
			for _, q := range parties {
				if got, ok := p.Address(q.Self().Member); !ok || got != q.mux.Advertise() {
					t.Errorf("address of %s: got %q %v, want %q", q.Self().Member, got, ok, q.mux.Advertise())
				}
			}
		}
		stopAll(t, parties...)
	})
}

// memberlist logs an error of this call, and a warning at each first start would alarm people.
func TestPacketToUnheardMemberIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, parties := three(t, memnet.New(1))
		_, err := parties[0].transport.WriteToAddress([]byte("ack"), memberlist.Address{Name: "stranger"})
		must.Do(t, err)
		stopAll(t, parties...)
	})
}

// three returns three nodes in virtual time that see each other.
func three(t *testing.T, n *memnet.Network) (*world, []*party) {
	t.Helper()
	w := newWorld(t, "10.0.0.1:7000")
	var parties []*party
	for i := byte(1); i <= 3; i++ {
		host := fmt.Sprintf("10.0.0.%d", i)
		parties = append(parties, w.join(t, n.Host(host), i, 1, host+":7000"))
	}
	await(t, time.Second, 3, parties...)
	return w, parties
}

func TestPartitionOfAnyLengthHeals(t *testing.T) {
	t.Parallel()
	for _, length := range []time.Duration{14 * time.Second, time.Minute, 10 * time.Minute} {
		for _, cut := range []string{"10.0.0.1", "10.0.0.3"} { // the seed, then another node
			t.Run(fmt.Sprintf("%v %s", length, cut), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					n := memnet.New(1)
					_, parties := three(t, n)
					n.Isolate(cut)
					time.Sleep(length)
					for _, p := range parties {
						if got := len(p.Members()); got == 3 {
							t.Errorf("after %v: %s still sees all", length, p.Self().Address)
						}
						if address, ok := p.Address(parties[0].Self().Member); !ok || address != "10.0.0.1:7000" {
							t.Errorf("address of a node that is cut off: got %q %v", address, ok)
						}
					}
					n.Heal()
					t.Logf("one cluster again after %v", await(t, 20*time.Second, 3, parties...))
					time.Sleep(time.Minute)
					await(t, time.Second, 3, parties...)
					stopAll(t, parties...)
				})
			})
		}
	}
}

func TestNodesMeetThroughLateSeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		w := newWorld(t, "10.0.0.1:7000")
		two := w.join(t, n.Host("10.0.0.2"), 2, 1, "10.0.0.2:7000")
		time.Sleep(time.Minute)
		one := w.join(t, n.Host("10.0.0.1"), 1, 1, "10.0.0.1:7000")
		await(t, 6*time.Second, 2, one, two)
		stopAll(t, one, two)
	})
}

func TestNodeReturnsAtAnotherAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		w, parties := three(t, n)
		moved := parties[2].Self().Member
		time.Sleep(10 * time.Second) // the addresses are written to files
		parties[2].stop(t)
		time.Sleep(2 * time.Second) // the others have not noticed
		w.seeds = []string{"10.0.0.99:1"}
		parties[2] = w.join(t, n.Host("10.0.0.33"), 3, 1, "10.0.0.33:7033")
		await(t, 5*time.Second, 3, parties...)
		time.Sleep(5 * time.Second)
		for _, p := range parties {
			if got, _ := p.Address(moved); got != "10.0.0.33:7033" {
				t.Errorf("%s: address of the node that moved: got %q", p.Self().Address, got)
			}
		}
		time.Sleep(time.Minute)
		await(t, time.Second, 3, parties...)
		stopAll(t, parties...)
	})
}

// The node has no seeds.
func TestNodeFindsOthersByItsFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		w, parties := three(t, n)
		time.Sleep(10 * time.Second)
		parties[1].stop(t)
		time.Sleep(5 * time.Minute)
		w.seeds = nil
		parties[1] = w.join(t, n.Host("10.0.0.22"), 2, 1, "10.0.0.22:7022")
		await(t, time.Second, 3, parties...)
		stopAll(t, parties...)
	})
}

func TestLostDirectoryMakesNewMember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		w, parties := three(t, n)
		old := parties[2].Self()
		parties[2].stop(t)
		time.Sleep(time.Second)
		parties[2] = w.join(t, n.Host("10.0.0.3"), 3, 2, "10.0.0.3:7000")
		await(t, 2*time.Second, 4, parties[0], parties[1])
		fresh := id.NewMember(nodeID(3), 2)
		for _, p := range parties[:2] {
			if got, ok := p.Address(fresh); !ok || got != "10.0.0.3:7000" {
				t.Errorf("address of the new member: got %q %v", got, ok)
			}
			if _, ok := p.Address(old.Member); !ok {
				t.Error("the old member has no address any more")
			}
			if got, ok := p.Node(nodeID(3)); !ok || got.Member != fresh {
				t.Errorf("member of node 3: got %v %v, want %v", got.Member, ok, fresh)
			}
		}
		await(t, time.Minute, 3, parties[:2]...) // the old one is declared dead
		stopAll(t, parties...)
	})
}

func TestUpdateReachesAllInASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, parties := three(t, memnet.New(1))
		cluster := id.Cluster{UUID: id.Random([16]byte{9})}
		meta := parties[0].Self()
		meta.Cluster, meta.Version = cluster, "v2"
		meta.MetaVoters = []id.Node{nodeID(1), nodeID(2), nodeID(3)}
		must.Do(t, parties[0].Update(meta))
		time.Sleep(time.Second)
		for _, p := range parties {
			got, ok := p.Node(nodeID(1))
			if !ok || got.Cluster != cluster || got.Version != "v2" || len(got.MetaVoters) != 3 {
				t.Errorf("%s: got %+v %v", p.Self().Address, got, ok)
			}
		}
		meta.Version = strings.Repeat("v", 1000)
		if err := parties[0].Update(meta); err == nil {
			t.Error("update with 1,000 bytes of version: no error")
		}
		stopAll(t, parties...)
	})
}

func TestLeavingNodeIsGoneAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, parties := three(t, memnet.New(1))
		if err := parties[2].Leave(time.Second); err != nil {
			t.Errorf("leave: %v", err)
		}
		await(t, time.Second, 2, parties[:2]...)
		time.Sleep(time.Minute)
		await(t, time.Second, 2, parties[:2]...)
		parties[2].stop(t)
		parties[2] = w.join(t, parties[2].mux.Network(), 3, 1, "10.0.0.3:7000")
		await(t, 6*time.Second, 3, parties...)
		stopAll(t, parties...)
	})
}

func TestClustersDoNotMix(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*Config){
		"key":     func(c *Config) { c.Keys = [][]byte{[]byte(strings.Repeat("k", KeyBytes))} },
		"label":   func(c *Config) { c.Label = "another" },
		"cluster": func(c *Config) { c.Self.Cluster = id.Cluster{UUID: id.Random([16]byte{8})} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(1)
				w := newWorld(t, "10.0.0.1:7000")
				founded := func(c *Config) { c.Self.Cluster = id.Cluster{UUID: id.Random([16]byte{7})} }
				one := w.join(t, n.Host("10.0.0.1"), 1, 1, "10.0.0.1:7000", founded)
				two := w.join(t, n.Host("10.0.0.2"), 2, 1, "10.0.0.2:7000", founded)
				other := w.join(t, n.Host("10.0.0.3"), 3, 1, "10.0.0.3:7000", founded, edit)
				await(t, time.Second, 2, one, two)
				for range 60 {
					time.Sleep(time.Second)
					if a, b := len(one.Members()), len(other.Members()); a != 2 || b != 1 {
						t.Fatalf("got %d and %d members, want 2 and 1", a, b)
					}
				}
				stopAll(t, one, two, other)
			})
		})
	}
}

func TestGossipSurvivesLossAndDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(7)
		_, parties := three(t, n)
		for i := range 3 {
			for j := range 3 {
				n.Set(fmt.Sprintf("10.0.0.%d", i+1), fmt.Sprintf("10.0.0.%d", j+1),
					memnet.Link{Loss: 0.1, Delay: 20 * time.Millisecond})
			}
		}
		for range 120 {
			time.Sleep(time.Second)
			for _, p := range parties {
				if got := len(p.Members()); got != 3 {
					t.Fatalf("a node was given up: %d members", got)
				}
			}
		}
		stopAll(t, parties...)
	})
}

func TestCopiedDirectoryIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(1)
		var out bytes.Buffer // written by one goroutine at a time, read after all have ended
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}))
		w := newWorld(t, "10.0.0.1:7000", "10.0.0.2:7000")
		other := w.join(t, n.Host("10.0.0.1"), 1, 1, "10.0.0.1:7000")
		first := w.join(t, n.Host("10.0.0.2"), 2, 1, "10.0.0.2:7000", func(c *Config) { c.Log = log })
		time.Sleep(time.Minute)
		if out.Len() > 0 {
			t.Errorf("reported before there was a second: %s", out.String())
		}
		second := w.join(t, n.Host("10.0.0.3"), 2, 1, "10.0.0.3:7000")
		time.Sleep(time.Minute)
		stopAll(t, other, first, second)
		if got := strings.Count(out.String(), "second process"); got != 1 {
			t.Errorf("reported %d times, want once: %s", got, out.String())
		}
	})
}
