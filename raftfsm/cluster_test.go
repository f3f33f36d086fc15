package raftfsm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/logstore"
	"facet/raftfsm/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal is a machine that answers with the number of commands so far and keeps
// the newest command of each kind (its first byte), and a chain of hashes.
type journal struct {
	mu    sync.Mutex // guards the fields from Apply and the test
	n     uint64
	chain [32]byte
	last  map[byte]string

	restored  atomic.Int32
	onRestore func(times int32) // may be nil
}

func newJournal() *journal { return &journal{last: make(map[byte]string)} }

func (j *journal) Apply(index uint64, cmd []byte) []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.n++
	h := sha256.New()
	h.Write(j.chain[:])
	h.Write(binary.BigEndian.AppendUint64(nil, index))
	h.Write(cmd)
	h.Sum(j.chain[:0])
	if len(cmd) > 0 {
		j.last[cmd[0]] = string(cmd)
	}
	return binary.BigEndian.AppendUint64(nil, j.n)
}

func (j *journal) Freeze() (Frozen, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &frozenJournal{n: j.n, chain: j.chain, last: maps.Clone(j.last)}, nil
}

func (j *journal) Restore(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, 64<<20))
	if err != nil {
		return err
	}
	if len(b) < 40 {
		return fmt.Errorf("journal of %d bytes", len(b))
	}
	n, chain, last := binary.BigEndian.Uint64(b), [32]byte(b[8:40]), make(map[byte]string)
	for b = b[40:]; len(b) >= 4; {
		size := int(binary.BigEndian.Uint32(b))
		if size < 1 || size > len(b)-4 {
			return errors.New("journal is torn")
		}
		last[b[4]] = string(b[4 : 4+size])
		b = b[4+size:]
	}
	j.mu.Lock()
	j.n, j.chain, j.last = n, chain, last
	j.mu.Unlock()
	if times := j.restored.Add(1); j.onRestore != nil {
		j.onRestore(times)
	}
	return nil
}

func (j *journal) Digest() [32]byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.chain
}

func (j *journal) count() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.n
}

type frozenJournal struct {
	n     uint64
	chain [32]byte
	last  map[byte]string
}

func (f *frozenJournal) WriteTo(w io.Writer) (int64, error) {
	b := binary.BigEndian.AppendUint64(nil, f.n)
	b = append(b, f.chain[:]...)
	for _, k := range slices.Sorted(maps.Keys(f.last)) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f.last[k])))
		b = append(b, f.last[k]...)
	}
	n, err := w.Write(b)
	return int64(n), err
}

func (f *frozenJournal) Release() {}

// loopback is a StreamLayer over TCP on this machine.
type loopback struct{ net.Listener }

func (loopback) Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// member is one running member of a test's group.
type member struct {
	*Group
	journal *journal
	name    id.Member
	disk    *slowDisk
	fatal   chan error
}

// cluster is a group of test members.
type cluster struct {
	t       testing.TB
	dir     string
	wires   *wires // nil: TCP on loopback
	tune    func(*Config)
	address sync.Map // id.Member → string
	members map[id.Member]*member
}

func names(n int) []id.Member {
	var list []id.Member
	for i := range n {
		list = append(list, id.Member(fmt.Sprintf("member-%c", 'a'+i)))
	}
	return list
}

// nodeNames returns members with the names of nodes.
func nodeNames(n int) []id.Member {
	var list []id.Member
	for i := range n {
		list = append(list, id.NewMember(id.Node{UUID: id.Random([16]byte{byte(i + 1)})}, 1))
	}
	return list
}

func newCluster(t testing.TB, w *wires, tune func(*Config)) *cluster {
	c := &cluster{t: t, dir: t.TempDir(), wires: w, tune: tune, members: make(map[id.Member]*member)}
	t.Cleanup(c.close)
	return c
}

func (c *cluster) close() {
	for _, name := range slices.Sorted(maps.Keys(c.members)) {
		c.stop(name)
	}
}

func (c *cluster) stop(name id.Member) {
	c.t.Helper()
	if m := c.members[name]; m != nil {
		if err := m.Close(); err != nil {
			c.t.Errorf("close %s: %v", name, err)
		}
		delete(c.members, name)
	}
}

// open starts a member on its folder, or fails the test.
func (c *cluster) open(name id.Member) *member {
	c.t.Helper()
	m, err := c.tryOpen(name)
	if err != nil {
		c.t.Fatalf("open %s: %v", name, err)
	}
	return m
}

func (c *cluster) tryOpen(name id.Member) (*member, error) {
	c.t.Helper()
	m := &member{journal: newJournal(), name: name, fatal: make(chan error, 1)}
	var stream transport.StreamLayer
	if c.wires != nil {
		stream = c.wires.listen(string(name))
		c.address.Store(name, string(name))
	} else {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.Do(c.t, err)
		c.address.Store(name, l.Addr().String())
		stream = loopback{l}
	}
	cfg := Config{
		Group: 7, Self: name, Dir: filepath.Join(c.dir, string(name)), Stream: stream,
		Resolve: func(m id.Member) (string, error) {
			if a, ok := c.address.Load(m); ok {
				return a.(string), nil
			}
			return "", fmt.Errorf("%s has no address", m)
		},
		Fatal: func(err error) { m.fatal <- err },
	}
	if os.Getenv("RAFTFSM_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("m", name)
	}
	if c.tune != nil {
		c.tune(&cfg)
	}
	g, err := open(cfg, m.journal, func(dir string) (logstore.Disk, error) {
		under := logstore.OpenDisk
		if c.wires != nil {
			under = openUnsynced
		}
		d, err := under(dir)
		if err != nil {
			return nil, err
		}
		m.disk = newSlowDisk(d)
		return m.disk, nil
	})
	if err != nil {
		return nil, err
	}
	m.Group = g
	c.members[name] = m
	return m, nil
}

// found starts a new group of voters.
func (c *cluster) found(voters ...id.Member) {
	c.t.Helper()
	var list []Server
	for _, v := range voters {
		list = append(list, Server{Member: v, Voter: true})
	}
	for _, v := range voters {
		must.Do(c.t, c.open(v).Bootstrap(list))
	}
}

// leader waits for a leader among the given members, or all.
func (c *cluster) leader(among ...id.Member) *member {
	c.t.Helper()
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		for name, m := range c.members {
			if m.IsLeader() && (len(among) == 0 || slices.Contains(among, name)) {
				return m
			}
		}
	}
	c.t.Fatal("no leader within 30 s")
	return nil
}

// lead makes a member the leader.
func (c *cluster) lead(name id.Member) {
	c.t.Helper()
	for c.leader().name != name {
		if err := c.leader().Transfer(c.t.Context(), name); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// addNonvoter adds a member that runs, and waits until all agree.
func (c *cluster) addNonvoter(name id.Member) {
	c.t.Helper()
	leader := c.leader()
	_, index, err := leader.Servers()
	if err == nil {
		err = leader.AddNonvoter(c.t.Context(), name, index)
	}
	must.Do(c.t, err)
	c.agree()
}

// snapshot lets members make a snapshot each.
func (c *cluster) snapshot(members ...id.Member) {
	c.t.Helper()
	for _, name := range members {
		must.Do(c.t, c.members[name].Snapshot())
	}
}

// others returns the members that run, without m, in order.
func (c *cluster) others(m *member) []id.Member {
	var list []id.Member
	for _, name := range slices.Sorted(maps.Keys(c.members)) {
		if name != m.name {
			list = append(list, name)
		}
	}
	return list
}

// propose commits cmd by whoever leads, trying again until it is acknowledged.
func (c *cluster) propose(cmd string, among ...id.Member) {
	c.t.Helper()
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := c.leader(among...).Propose(ctx, []byte(cmd))
		cancel()
		if err == nil {
			return
		}
	}
	c.t.Fatalf("%q was not committed within 30 s", cmd)
}

// agree waits until the members have applied what the leader has, and compares
// their digests.
func (c *cluster) agree(members ...id.Member) {
	c.t.Helper()
	if len(members) == 0 {
		members = slices.Sorted(maps.Keys(c.members))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var index uint64
	for err := error(&NotLeaderError{}); err != nil; {
		if index, err = c.leader(members...).ReadIndex(ctx); err != nil && ctx.Err() != nil {
			c.t.Fatal(err)
		}
	}
	var want [32]byte
	for i, name := range members {
		m := c.members[name]
		if err := m.WaitApplied(ctx, index); err != nil {
			c.t.Fatalf("%s: %v, at %d", name, err, m.Applied())
		}
		got := m.journal.Digest()
		if i == 0 {
			want = got
		}
		if !bytes.Equal(got[:], want[:]) {
			c.t.Errorf("%s at index %d: digest %x, want %x", name, m.Applied(), got[:4], want[:4])
		}
	}
}
