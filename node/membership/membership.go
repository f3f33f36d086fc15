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

	membersMax = 1024 // nodes that are listened to; one more is ignored
	seedsMax   = 64
	labelMax   = 64

	// rejoinInterval is how often seeds and last known addresses that are not
	// members are called. memberlist itself gives up a node for good half a
	// minute after it died.
	rejoinInterval = 5 * time.Second
	// rejoinSoon follows a call that reached somebody who is not a member yet: the
	// first exchange makes each side refute its death, the second one tells it.
	rejoinSoon = 250 * time.Millisecond
	// rejoinMax bounds the addresses that are called in one round, rejoinWidth
	// those that are called at once.
	rejoinMax   = 16
	rejoinWidth = 8
	// streamTimeout bounds an exchange over a stream.
	streamTimeout = 4 * time.Second
	// announceTimeout bounds the wait for new metadata to be sent once.
	announceTimeout = 2 * time.Second
)

// Config says how a node takes part in gossip.
type Config struct {
	// Mux is the port between nodes; its number is used for packets too.
	Mux *transport.Mux
	// Self is what this node says of itself. An empty Address is Mux.Advertise.
	Self Meta
	// Seeds are host:port of nodes to call first; the own address among them does
	// no harm. At most 64.
	Seeds []string
	// Keys are KeyBytes long, the same on all nodes of a cluster: the first one encrypts
	// gossip, all decrypt it.
	Keys [][]byte
	// Label keeps clusters apart that share a key; at most 64 bytes.
	Label string
	// File keeps the last known addresses, so that the node finds its cluster when
	// all seeds have moved. It is in the data directory; empty keeps none.
	File string
	Log  *slog.Logger
}

// Member is a node that is there, as it describes itself.
type Member struct{ Meta }

// Membership is one node's view of which nodes are there. It is safe for
// concurrent use.
type Membership struct {
	list      *memberlist.Memberlist
	transport *gossipTransport
	log       *slog.Logger
	seeds     []string
	keys      *memberlist.Keyring // guarded by itself
	self      id.Member
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	wg        sync.WaitGroup // the maintenance loop and its calls
	announce  chan struct{}  // capacity 1: own metadata changed
	book      *addressBook
	closeOnce sync.Once
	closeErr  error
	twin      atomic.Bool // a second process with this identity was reported

	// mu guards what follows. memberlist calls in with its own lock held, so
	// nothing is called while it is held.
	mu      sync.RWMutex
	own     Meta
	ownWire []byte
	members map[id.Member]Meta // alive or suspected, the own included
	changed chan struct{}      // closed and replaced at each change of members
}

// Open takes part in gossip. It returns at once; the seeds are called in the
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
		own: own, ownWire: wire,
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

// settings gives memberlist's configuration: its values for local networks, but
// quicker to gossip, and with streams that give up before the next round of calls.
func (m *Membership) settings(cfg Config) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = string(m.self)
	c.Transport = m.transport
	c.Label = cfg.Label
	c.Keyring = m.keys
	c.TCPTimeout = streamTimeout
	c.GossipInterval = 100 * time.Millisecond
	c.PushPullInterval = 15 * time.Second
	c.EnableCompression = false // packets are small; a compressed one hides its size
	c.MsgpackUseNewTimeFormat = true
	c.DNSConfigPath = ""
	c.Delegate = delegate{m}
	c.Events = events{m}
	c.Alive = events{m}
	c.LogOutput = bridge{m.log}
	return c
}

// Members gives the nodes that are there, this one included, sorted by identity.
// A node that stopped without Leave stays in it for some seconds.
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

// Address gives host:port between nodes of a member: where it is, or where it was
// last seen.
func (m *Membership) Address(member id.Member) (string, bool) {
	m.mu.RLock()
	meta, ok := m.members[member]
	m.mu.RUnlock()
	if ok {
		return meta.Address, true
	}
	return m.book.address(member)
}

// Node gives the member of a node that is there. Of two, which have data
// directories of their own, it is the one whose process started later.
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

// Self gives what this node says of itself.
func (m *Membership) Self() Meta {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.own
}

// Changed gives a channel that closes when Members changes. Take it before
// Members, so that no change is missed.
func (m *Membership) Changed() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changed
}

// Update changes what this node says of itself, and tells the others in the
// background. Member and Incarnation stay as they are. It is ErrMeta when meta is
// malformed or too large.
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
	default: // one is due already, and it takes the newest
	}
	return nil
}

// Forget drops the last known address of a member that was removed for good, so
// that it is not called for ever. A member that is there stays.
func (m *Membership) Forget(member id.Member) { m.book.forget(member) }

// Leave tells the others that this node goes, and waits until that was sent, at
// most timeout. Close is still needed.
func (m *Membership) Leave(timeout time.Duration) error {
	if err := m.list.Leave(timeout); err != nil {
		return fmt.Errorf("leave gossip: %w", err)
	}
	return nil
}

// Close ends the gossip without a word to the others and waits for what it started;
// probes of memberlist that are under way end by themselves, some seconds later.
func (m *Membership) Close() error {
	m.closeOnce.Do(func() {
		m.cancel()
		m.wg.Wait()
		m.closeErr = m.list.Shutdown() // shuts the transport too
		m.book.save(m.addresses())
	})
	return m.closeErr
}

// notify tells who waits that members changed. The caller holds mu.
func (m *Membership) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// addresses gives the address of each other member.
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

// route gives the address of a member by its name in gossip.
func (m *Membership) route(name string) (string, bool) { return m.Address(id.Member(name)) }
