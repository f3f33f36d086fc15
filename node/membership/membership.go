package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"facet/internal/id"
	"facet/node/transport"
)

// Bounds and times of gossip.
const (
	// KeyBytes is the length of the gossip key (AES-256-GCM).
	KeyBytes = 32

	membersMax = 1024 // most nodes that are recorded; one more is ignored
	seedsMax   = 64
	labelMax   = 64

	// rejoinInterval is how often this node calls the seeds and last known addresses
	// at which no member is present. memberlist itself stops calling a dead node after
	// 30 seconds.
	rejoinInterval = 5 * time.Second
	// rejoinSoon is the pause after a call that reached a node which is not a
	// member yet. In the first exchange each side refutes its death; the second one
	// spreads the refutation.
	rejoinSoon = 250 * time.Millisecond
	// rejoinMax is the most addresses that this node calls in one round. It calls at
	// most rejoinWidth of them at once.
	rejoinMax   = 16
	rejoinWidth = 8
	// streamTimeout is the longest time for an exchange over a stream.
	streamTimeout = 4 * time.Second
	// probeTimeout is the longest wait for the answer to a probe. The rest of probeInterval is
	// for probes through other members.
	probeTimeout  = time.Second
	probeInterval = 1500 * time.Millisecond
	// announceTimeout is how long a change of metadata may take to be sent once.
	announceTimeout = 2 * time.Second
)

// Config configures a Membership.
type Config struct {
	// Mux is the port between nodes. Packets use the same port number.
	Mux *transport.Mux
	// Self is the metadata of this node. An empty Address means Mux.Advertise.
	Self Meta
	// Seeds are the host:port of nodes to call first, at most 64. The node's own
	// address among them does no harm.
	Seeds []string
	// Keys are KeyBytes long and the same on all nodes of a cluster. The first key
	// encrypts gossip. Each of the keys can decrypt it.
	Keys [][]byte
	// Label separates clusters that share a key. It has at most 64 bytes.
	Label string
	// File is the file of the last known addresses, in the data directory. With it
	// the node finds its cluster when all seeds have moved. Empty means no file.
	File string
	Log  *slog.Logger
}

// Member is the description that a present node gives of itself.
type Member struct{ Meta }

// Membership is one node's view of the present nodes. It is safe for concurrent
// use.
type Membership struct {
	list      *memberlist.Memberlist
	transport *gossipTransport
	log       *slog.Logger
	seeds     []string
	keys      *memberlist.Keyring // has its own lock
	self      id.Member
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	wg        sync.WaitGroup // the maintenance loop and its calls
	announce  chan struct{}  // capacity 1: this node's metadata changed
	book      *addressBook
	bridge    *bridge
	closeOnce sync.Once
	closeErr  error
	twin      atomic.Bool // a second process with this identity was reported

	// mu guards own, ownWire, members and changed. memberlist holds its own lock when
	// it calls this package. So no code calls memberlist while it holds mu.
	mu      sync.RWMutex
	own     Meta
	ownWire []byte
	members map[id.Member]Meta // alive or suspected, this node included
	changed chan struct{}      // closed and replaced at each change of members
}

// Open joins the gossip. It returns at once; the seeds are called in the
// background, for ever.
func Open(ctx context.Context, cfg Config) (*Membership, error) {
	if err := checkKeys(cfg.Keys); err != nil {
		return nil, fmt.Errorf("open gossip: %w", err)
	}
	if len(cfg.Label) > labelMax || len(cfg.Seeds) > seedsMax {
		return nil, fmt.Errorf("open gossip: label of %d bytes, %d seeds: want at most %d, at most %d",
			len(cfg.Label), len(cfg.Seeds), labelMax, seedsMax)
	}
	keyring, err := memberlist.NewKeyring(cfg.Keys, cfg.Keys[0])
	if err != nil {
		return nil, fmt.Errorf("open gossip: %w", err)
	}
	for _, s := range cfg.Seeds {
		if !isAddress(s) {
			return nil, fmt.Errorf("open gossip: seed %.80q is not host:port", s)
		}
	}
	own := cfg.Self
	if own.Address == "" {
		own.Address = cfg.Mux.Advertise()
	}
	if own.Incarnation == 0 {
		own.Incarnation = uint64(time.Now().UnixMilli())
	}
	wire, err := own.encode()
	if err != nil {
		return nil, fmt.Errorf("open gossip: %w", err)
	}
	m := &Membership{
		log: cfg.Log, seeds: slices.Clone(cfg.Seeds), self: own.Member, keys: keyring,
		announce: make(chan struct{}, 1), book: openBook(cfg.File, cfg.Log),
		bridge: newBridge(cfg.Log), own: own, ownWire: wire,
		members: map[id.Member]Meta{own.Member: own}, changed: make(chan struct{}),
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.transport, err = openTransport(ctx, cfg.Mux, m)
	if err != nil {
		m.cancel()
		return nil, fmt.Errorf("open gossip: %w", err)
	}
	m.list, err = memberlist.Create(m.settings(cfg))
	if err != nil {
		m.cancel()
		return nil, errors.Join(fmt.Errorf("open gossip: %w", err), m.transport.Shutdown())
	}
	m.wg.Go(m.maintain)
	return m, nil
}

// settings returns memberlist's configuration for local networks with three changes: it
// gossips faster, its streams give up before the next round of calls, and a probe waits long
// enough for a round trip of half a second.
func (m *Membership) settings(cfg Config) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = string(m.self)
	c.Transport = m.transport
	c.Label = cfg.Label
	c.Keyring = m.keys
	c.TCPTimeout = streamTimeout
	c.ProbeInterval, c.ProbeTimeout = probeInterval, probeTimeout
	c.GossipInterval = 100 * time.Millisecond
	c.PushPullInterval = 15 * time.Second
	c.EnableCompression = false // packets are small; a compressed one hides its size
	c.MsgpackUseNewTimeFormat = true
	c.DNSConfigPath = ""
	c.Delegate = delegate{m}
	c.Events = events{m}
	c.Alive = events{m}
	c.LogOutput = m.bridge
	return c
}

// Refused returns the number of packets and streams that gossip has refused, because
// they were malformed or not encrypted with a gossip key.
func (m *Membership) Refused() uint64 { return m.bridge.refused.Load() }

// Members returns the present nodes, this one included, sorted by identity. A node
// that stopped without Leave stays among them for some seconds.
func (m *Membership) Members() []Member {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]Member, 0, len(m.members))
	for _, meta := range m.members {
		out = append(out, Member{meta})
	}
	slices.SortFunc(out, func(a, b Member) int { return strings.Compare(string(a.Member), string(b.Member)) })
	return out
}

// Address returns the present or else the last known host:port at which other nodes
// reach a member.
func (m *Membership) Address(member id.Member) (string, bool) {
	m.mu.RLock()
	meta, ok := m.members[member]
	m.mu.RUnlock()
	if ok {
		return meta.Address, true
	}
	return m.book.address(member)
}

// Node returns the present member of a node. A node whose data directory was
// replaced may have two; Node returns the one whose process started later.
func (m *Membership) Node(node id.Node) (Member, bool) {
	var found Member
	ok := false
	for _, member := range m.Members() {
		if n, err := member.Member.Node(); err == nil && n == node && (!ok || member.Incarnation > found.Incarnation) {
			found, ok = member, true
		}
	}
	return found, ok
}

// Self returns the metadata of this node.
func (m *Membership) Self() Meta {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.own
}

// Changed returns a channel that closes when Members changes. Call it before
// Members, so that no change is missed.
func (m *Membership) Changed() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changed
}

// Update changes this node's metadata and announces the change in the background.
// It keeps Member and Incarnation. It returns ErrMeta when meta is malformed or too
// large.
func (m *Membership) Update(meta Meta) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	meta.Member, meta.Incarnation = m.own.Member, m.own.Incarnation
	if meta.Address == "" {
		meta.Address = m.own.Address
	}
	wire, err := meta.encode()
	if err != nil {
		return fmt.Errorf("update gossip: %w", err)
	}
	m.own, m.ownWire = meta, wire
	m.members[meta.Member] = meta
	m.notify()
	select {
	case m.announce <- struct{}{}:
	default: // an announcement is due already, and it sends the newest metadata
	}
	return nil
}

// Forget drops the last known address of a member that was removed for good, so
// that it is not called for ever. A present member is not affected.
func (m *Membership) Forget(member id.Member) { m.book.forget(member) }

// Leave announces that this node leaves, and waits at most timeout until that was
// sent. The caller still has to call Close.
func (m *Membership) Leave(timeout time.Duration) error {
	if err := m.list.Leave(timeout); err != nil {
		return fmt.Errorf("leave gossip: %w", err)
	}
	return nil
}

// Close ends the gossip without an announcement and waits for the goroutines of
// this package. Probes that memberlist has started end some seconds later.
func (m *Membership) Close() error {
	m.closeOnce.Do(func() {
		m.cancel()
		m.wg.Wait()
		m.closeErr = m.list.Shutdown() // also shuts the transport
		m.book.save(m.addresses())
	})
	return m.closeErr
}

// notify wakes the goroutines that wait for a change of members. The caller holds
// mu.
func (m *Membership) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// addresses returns the address of each other member.
func (m *Membership) addresses() map[id.Member]string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make(map[id.Member]string, len(m.members))
	for member, meta := range m.members {
		if member != m.self {
			out[member] = meta.Address
		}
	}
	return out
}

// route returns the address of a member by its name in gossip.
func (m *Membership) route(name string) (string, bool) { return m.Address(id.Member(name)) }
