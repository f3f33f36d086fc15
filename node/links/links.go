// Package links finds cut links: pairs of nodes that do not reach each other while a third
// node reaches both. New streams between such a pair go through the third node
// (transport.Mux.Reroute).
//
// Each node asks every present node, over a connection that no relay carries, how long ago
// it heard from the others. The link to a node is cut when another node heard from it
// cutAfter later than this node did. A node that is dead or paused is heard by nobody, so its
// links do not count as cut.
//
// The package may import node/transport, node/membership, node/peer, node/loop, node/wire and
// internal/id.
package links

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/internal/id"
	"facet/internal/tick"
	"facet/node/loop"
	"facet/node/membership"
	"facet/node/peer"
	"facet/node/transport"
	"facet/node/wire"
)

const (
	// restInterval is the time between two questions to one node while all nodes answer, else
	// askInterval.
	restInterval = 2 * tick.Interval
	askInterval  = tick.Interval
	// cutAfter is how much later another node must have heard from a node than this one. It
	// is longer than restInterval, so that a node which has just died is not taken for one
	// behind a cut link.
	cutAfter = time.Second
	// healAfter is how long a node must answer, each question within promptly, before its
	// link counts as whole again.
	healAfter = 2 * time.Second
	promptly  = time.Second
	// relayAge is how old a relay's last word from the node may be.
	relayAge = 3 * time.Second
	// presentInterval is how often gossip is compared with the nodes that are asked.
	presentInterval = 500 * time.Millisecond

	methodHeard = "node.heard"
)

// Config configures Links.
type Config struct {
	Node id.Node // this node
	Mux  *transport.Mux
	// Present returns the nodes that gossip shows.
	Present func() []membership.Member
	// Name returns a node's name for people.
	Name func(id.Node) string
	// Wall returns this node's time. Heard receives that of another node, which answered
	// between two moments.
	Wall  func() time.Time
	Heard func(node id.Node, wall, asked, answered time.Time)
	Log   *slog.Logger
}

// Links watches the links from this node to the others. It is safe for concurrent use.
type Links struct {
	*loop.Loop
	cfg   Config
	call  func(ctx context.Context, k *link) ([]byte, error) // asks the node of k; set by Run
	route func(address string, r transport.Route)

	// mu guards links and what they hold. It is taken before the locks of the Mux.
	mu    sync.Mutex
	links map[id.Node]*link
}

// link is this node's view of the link to another node.
type link struct {
	node    id.Node
	address string
	last    time.Time             // of the last answer; at first of the link's discovery
	steady  time.Time             // since when each question was answered promptly; zero after a failure
	heard   map[id.Node]time.Time // when the node last heard from others, at the earliest; nil before its first answer
	cut     time.Time             // since when the link is cut; zero: it is whole
	through id.Node               // the relay of a cut link
	cancel  context.CancelFunc    // ends watch
}

// heard is the answer to methodHeard: how many milliseconds ago a node heard from others, and
// its time in milliseconds since 1970.
type heard struct {
	Ago  map[id.Node]int64 `json:"ago"`
	Wall int64             `json:"wall"`
}

// New returns Links that know no other node.
func New(c Config) *Links {
	return &Links{Loop: loop.New("links"), cfg: c, route: c.Mux.Reroute, links: map[id.Node]*link{}}
}

// Methods returns the handlers of the questions of other nodes.
func (l *Links) Methods() map[string]peer.Handler {
	return map[string]peer.Handler{methodHeard: func(context.Context, []byte) ([]byte, error) { return json.Marshal(l.own(time.Now())) }}
}

// own returns when this node heard from others.
func (l *Links) own(now time.Time) heard {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := heard{Ago: map[id.Node]int64{}, Wall: l.cfg.Wall().UnixMilli()}
	for node, k := range l.links {
		if ago := now.Sub(k.last); k.heard != nil && ago < relayAge {
			h.Ago[node] = ago.Milliseconds()
		}
	}
	return h
}

// Run watches the links until ctx ends. Then all links count as whole.
func (l *Links) Run(ctx context.Context) {
	client := transport.OpenDirectClient(l.cfg.Mux)
	l.call = func(ctx context.Context, k *link) ([]byte, error) {
		return client.Call(ctx, transport.At(k.node, k.address), methodHeard, nil)
	}
	var work sync.WaitGroup
	defer func() {
		l.compare(ctx, nil, &work)
		work.Wait()
		_ = client.Close() // it has no error
	}()
	l.Every(ctx, presentInterval, func(ctx context.Context) error {
		l.compare(ctx, l.cfg.Present(), &work)
		return nil
	})
}

// compare starts to watch the links to new nodes, and forgets those to absent ones.
func (l *Links) compare(ctx context.Context, present []membership.Member, work *sync.WaitGroup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	addresses := map[id.Node]string{}
	for _, m := range present { // of two members of one node the later counts
		if node, err := m.Member.Node(); err == nil && node != l.cfg.Node {
			addresses[node] = m.Address
		}
	}
	for node, k := range l.links {
		if addresses[node] != k.address {
			k.cancel()
			delete(l.links, node)
			l.heal(k)
		}
	}
	for node, address := range addresses {
		if l.links[node] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		k := &link{node: node, address: address, last: time.Now(), cancel: cancel}
		l.links[node] = k
		work.Go(func() { l.watch(ctx, k) })
	}
}

// watch asks the node of k until ctx ends.
func (l *Links) watch(ctx context.Context, k *link) {
	for ctx.Err() == nil {
		l.ask(ctx, k)
		if tick.Pause(ctx, l.interval(time.Now())) != nil {
			return
		}
	}
}

// interval returns the time until the next question.
func (l *Links) interval(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.links {
		if !k.cut.IsZero() || now.Sub(k.last) > restInterval+askInterval/2 {
			return askInterval
		}
	}
	return restInterval
}

// ask asks the node of k once, and judges the links to which its answer matters: those that are cut, and
// those to nodes that it heard from later than this node.
func (l *Links) ask(ctx context.Context, k *link) {
	asked := time.Now()
	try, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	body, err := l.call(try, k)
	_, refused := errors.AsType[*transport.RemoteError](err) // it has no record of this node
	var h heard
	if err == nil {
		if err := json.Unmarshal(body, &h); err != nil {
			l.cfg.Log.WarnContext(ctx, "a node's answer about its links can't be read", "node", k.node, "err", err)
		}
	}
	if h.Wall != 0 {
		l.cfg.Heard(k.node, time.UnixMilli(h.Wall), asked, time.Now())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return // the link is forgotten
	}
	k.note(asked, time.Now(), err == nil || refused, h)
	for _, other := range l.links {
		if !other.cut.IsZero() || k.heard[other.node].After(other.last.Add(cutAfter)) {
			l.judge(other, time.Now())
		}
	}
}

// note records the outcome of a question.
func (k *link) note(asked, now time.Time, answered bool, h heard) {
	if !answered {
		k.steady = time.Time{}
		return
	}
	k.last = now
	if k.steady.IsZero() || now.Sub(asked) > promptly {
		k.steady = now
	}
	k.heard = make(map[id.Node]time.Time, len(h.Ago))
	for node, ago := range h.Ago {
		k.heard[node] = asked.Add(-time.Duration(ago) * time.Millisecond)
	}
}

// judge decides whether k is cut, and sets the route to its node. The caller holds mu.
func (l *Links) judge(k *link, now time.Time) {
	if k.cut.IsZero() {
		if via := l.relay(k, k.last.Add(cutAfter), now); via != nil {
			k.cut = k.last
			l.cfg.Log.Warn("a link is cut: another node relays its streams", "to", l.cfg.Name(k.node), "through", l.cfg.Name(via.node))
			l.reroute(k, via)
		}
		return
	}
	via := l.relay(k, now.Add(-relayAge), now)
	switch {
	case !k.steady.IsZero() && k.last.Sub(k.steady) >= healAfter && now.Sub(k.last) < cutAfter:
		l.cfg.Log.Info("a cut link is whole again", "to", l.cfg.Name(k.node), "ms", now.Sub(k.cut).Milliseconds())
		l.heal(k)
	case via == nil:
		l.cfg.Log.Warn("no node reaches the node behind a cut link any more", "to", l.cfg.Name(k.node))
		l.heal(k)
	case via.node != k.through:
		l.reroute(k, via)
	}
}

// relay returns the link to a node that heard from the node of k at since or later, or nil.
// It prefers the present relay. The caller holds mu.
func (l *Links) relay(k *link, since, now time.Time) *link {
	var best *link
	for _, r := range l.links {
		if r == k || !r.cut.IsZero() || now.Sub(r.last) > relayAge || !r.heard[k.node].After(since) {
			continue
		}
		if r.node == k.through {
			return r
		}
		if best == nil || r.heard[k.node].After(best.heard[k.node]) {
			best = r
		}
	}
	return best
}

// reroute sends the streams to the node of k through another node. The caller holds mu.
func (l *Links) reroute(k, via *link) {
	k.through = via.node
	l.route(k.address, transport.Route{Through: via.address, To: k.node})
}

// heal ends the relaying of a link. The caller holds mu.
func (l *Links) heal(k *link) {
	if !k.cut.IsZero() {
		k.cut, k.through = time.Time{}, id.Node{}
		l.route(k.address, transport.Route{})
	}
}

// Cut returns the cut links of this node, by the names of the nodes at their other ends.
func (l *Links) Cut() []wire.CutLink {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []wire.CutLink
	for _, k := range slices.Collect(maps.Values(l.links)) {
		if !k.cut.IsZero() {
			list = append(list, wire.CutLink{To: k.node, Name: l.cfg.Name(k.node), Through: l.cfg.Name(k.through), Since: k.cut.UTC()})
		}
	}
	slices.SortFunc(list, func(a, b wire.CutLink) int { return strings.Compare(a.Name, b.Name) })
	return list
}
