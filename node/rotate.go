package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/shard/seal"
)

const (
	// ringFanOut bounds how many nodes take a step at once, ringTimeout each of them.
	ringFanOut  = 16
	ringTimeout = 10 * time.Second
	// rekeyBatch is how many secrets one command carries: some 150 bytes each.
	rekeyBatch = 500
	// gossipRest lets packets arrive that the old key has sealed.
	gossipRest = time.Second

	// levelWait is how long a rotation waits for the cluster to be at a level that all
	// nodes know: it has just been founded or upgraded.
	levelWait = 5 * time.Second

	// eraseSlack is by how much the clocks of nodes may differ.
	eraseSlack = time.Minute

	keyCheckPurpose = "cluster-key-check"
)

// rings are the shared keys of this node.
type rings struct {
	gossip, cluster *ring
	rotating        sync.Mutex // held on meta's leader while it replaces a key
}

func (r *rings) named(name string) (*ring, error) {
	switch name {
	case RingGossip:
		return r.gossip, nil
	case RingCluster:
		return r.cluster, nil
	default:
		return nil, router.Errorf(router.InvalidRequest, "", "a ring is %s or %s", RingGossip, RingCluster)
	}
}

// openMaster opens the cluster's key.
func (n *Node) openMaster() error {
	r, err := openRing(n.cfg.ClusterKeyFile)
	if err != nil {
		return err
	}
	secrets := r.secrets()
	if n.master, err = seal.NewMaster(secrets[0], secrets[1:]...); err != nil {
		return err
	}
	r.apply, n.rings.cluster = n.master.Change, r
	return nil
}

// keyCheck tells the cluster's key from others without telling what it is.
func (n *Node) keyCheck() []byte {
	mac := n.master.MAC(keyCheckPurpose, nil)
	return mac[:]
}

// hasKey tells whether this node has the key of which keyCheck was stored.
func (n *Node) hasKey(check []byte) bool {
	return slices.ContainsFunc(n.master.MACs(keyCheckPurpose, nil), func(mac [32]byte) bool { return string(mac[:]) == string(check) })
}

// Rotate replaces a key that all nodes share: the new one is added on all of them,
// then used by all, and only then are others retired, so that at no moment a node
// can't open what another seals. All nodes of the cluster must answer. It ends a
// rotation that was interrupted instead of beginning another. It may be asked of any
// node and runs on meta's leader.
func (n *Node) Rotate(ctx context.Context, o RingOrder) (a RingAnswer, err error) {
	if _, err := n.rings.named(o.Ring); err != nil {
		return a, err
	}
	leader, ok := n.groups.meta.Leader()
	if !ok {
		return a, router.Errorf(router.Unavailable, "", "meta has no leader")
	}
	if leader == n.member {
		return n.rotate(ctx, o)
	}
	body, err := json.Marshal(o)
	if err != nil {
		return a, fmt.Errorf("ask for a rotation: %w", err)
	}
	answer, err := n.peers.Call(ctx, leader, methodRotate, body)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(answer, &a)
}

func (n *Node) rotate(ctx context.Context, o RingOrder) (a RingAnswer, err error) {
	if !n.groups.meta.IsLeader() {
		return a, notHere(id.Meta)
	}
	if !n.rings.rotating.TryLock() {
		return a, router.Errorf(router.InvalidRequest, "", "a key is being replaced already")
	}
	defer n.rings.rotating.Unlock()
	if err := n.router.SyncMeta(ctx); err != nil {
		return a, err
	}
	if r, ok := n.groups.metaState.Restoration(); ok && !r.Done {
		return a, router.Errorf(router.InvalidRequest, "", "a backup is being restored: end that first")
	}
	if err := n.mayRekey(ctx, o.Ring); err != nil {
		return a, err
	}
	return n.replaceKey(ctx, o)
}

// replaceKey takes the steps of a rotation. What comes into meta meanwhile is wrapped by
// the new key, or refused (metafsm.OtherKey).
func (n *Node) replaceKey(ctx context.Context, o RingOrder) (a RingAnswer, err error) {
	key, resumed, err := n.ringKeyFor(ctx, o.Ring)
	if err != nil {
		return a, err
	}
	a = RingAnswer{Ring: o.Ring, Key: KeyInfo{ID: key.id(), Since: key.since}, Resumed: resumed}
	step := ringOrder{Ring: o.Ring, Step: ringAdd, Key: key.id(), Secret: key.secret, Since: key.since}
	if _, err := n.stepAll(ctx, step); err != nil {
		return a, err
	}
	step.Step, step.Secret = ringUse, nil
	if _, err := n.stepAll(ctx, step); err != nil {
		return a, err
	}
	if o.Ring == RingCluster {
		if a.Rewrapped, err = n.rewrapAll(ctx); err != nil {
			return a, err
		}
	} else if err := pause(ctx, gossipRest); err != nil {
		return a, err
	}
	step.Step = ringRetire
	states, err := n.stepAll(ctx, step)
	if err != nil {
		return a, err
	}
	a.Nodes = len(states)
	n.log.Info("a shared key was replaced", "ring", o.Ring, "key", a.Key.ID, "nodes", a.Nodes)
	return a, nil
}

// mayRekey refuses to change the cluster's key while a node may run software that does
// not know the command for it: such a node would end.
func (n *Node) mayRekey(ctx context.Context, ring string) error {
	if ring != RingCluster {
		return nil
	}
	for late := time.Now().Add(levelWait); ; {
		now := n.groups.metaState.Level()
		if now >= metafsm.LevelRekey {
			return nil
		}
		var old []string
		for _, r := range n.groups.metaState.Nodes() {
			if r.State != metafsm.NodeRemoved && r.Knows() < metafsm.LevelRekey {
				old = append(old, r.Name)
			}
		}
		if len(old) > 0 {
			return router.Errorf(router.InvalidRequest, "", "the cluster's key can be changed from level %d on, and the cluster is at level %d: "+
				"upgrade %s first (facet status shows versions)", metafsm.LevelRekey, now, strings.Join(old, ", "))
		}
		if time.Now().After(late) {
			return &router.Error{Kind: router.Unavailable, Message: "the cluster is not at its new level yet; try again", RetryAfter: stewardTimeout}
		}
		if err := pause(ctx, stewardPause); err != nil {
			return err
		}
	}
}

// ringKeyFor gives the key of a rotation that was interrupted, or else a new one.
func (n *Node) ringKeyFor(ctx context.Context, name string) (key ringKey, resumed bool, err error) {
	states, err := n.stepAll(ctx, ringOrder{Ring: name, Step: ringLook})
	if err != nil {
		return key, false, err
	}
	r, _ := n.rings.named(name)
	own, key := r.infos(), r.newest()
	ended := true
	for _, s := range states {
		ended = ended && len(s) == 1 && sameRing(s, own)
		if !slices.ContainsFunc(own, func(k KeyInfo) bool { return k.ID == s[0].ID }) {
			return key, false, router.Errorf(router.InvalidRequest, "", "a node seals with a key that meta's leader does not have: give all nodes the same key file")
		}
	}
	if ended {
		before := key.since
		if key, err = newRingKey(); !key.since.After(before) {
			key.since = before.Add(time.Second) // newest must find it
		}
		return key, false, err
	}
	return key, true, nil
}

// stepAll has every node of the cluster take a step, this one first, and gives their
// rings. If one of them does not, the error says which and why.
func (n *Node) stepAll(ctx context.Context, o ringOrder) ([][]KeyInfo, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("change a shared key: %w", err)
	}
	r, err := n.rings.named(o.Ring)
	if err != nil {
		return nil, err
	}
	own, err := n.stepOwn(r, o)
	if err != nil {
		return nil, router.Errorf(router.Unavailable, "", "node %s: %v", n.cfg.Name, err)
	}
	var nodes []metafsm.Node
	for _, m := range n.groups.metaState.Nodes() {
		if m.State != metafsm.NodeRemoved && m.Member != n.member {
			nodes = append(nodes, m)
		}
	}
	states, errs := make([][]KeyInfo, len(nodes)), make([]error, len(nodes))
	var work sync.WaitGroup
	slots := make(chan struct{}, ringFanOut)
	for i, m := range nodes {
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, ringTimeout)
			defer cancel()
			answer, err := n.peers.Call(ctx, m.Member, methodRing, body)
			if err == nil {
				err = json.Unmarshal(answer, &states[i])
			}
			if err == nil && len(states[i]) == 0 {
				err = errors.New("it tells of no key")
			}
			if err != nil {
				errs[i] = fmt.Errorf("node %s: %w", m.Name, err)
			}
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, router.Errorf(router.Unavailable, "", "every node must take part (remove those that are gone for good), "+
			"then give the order again, it goes on from here: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return append(states, own), nil
}

// stepOwn takes a step on this node. When a cluster key retires, what it has wrapped
// leaves this node's disk, too.
func (n *Node) stepOwn(r *ring, o ringOrder) ([]KeyInfo, error) {
	infos, err := r.step(o)
	if err != nil || o.Ring != RingCluster || o.Step != ringRetire {
		return infos, err
	}
	if err := n.groups.meta.Erase(time.Now().Add(eraseSlack)); err != nil {
		return nil, fmt.Errorf("take what the old key has wrapped off the disk: %w", err)
	}
	return infos, nil
}

// serveRing answers stepAll.
func (n *Node) serveRing(ctx context.Context, body []byte) ([]byte, error) {
	var o ringOrder
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("read an order about a shared key: %w", err)
	}
	r, err := n.rings.named(o.Ring)
	if err == nil && o.Step == ringRetire && o.Ring == RingCluster {
		err = n.router.SyncMeta(ctx) // what was wrapped again must be here before the log is cut
	}
	if err != nil {
		return nil, err
	}
	infos, err := n.stepOwn(r, o)
	if err != nil {
		return nil, err
	}
	return json.Marshal(infos)
}

// serveRotate answers Rotate.
func (n *Node) serveRotate(ctx context.Context, body []byte) ([]byte, error) {
	var o RingOrder
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("read an order about a shared key: %w", err)
	}
	a, err := n.rotate(ctx, o)
	if err != nil {
		return nil, peerFault{err}
	}
	return json.Marshal(a)
}

// rewrapAll wraps every secret of meta with the cluster's new key, which all nodes use
// by now. The first command has meta refuse secrets that come late, wrapped by another.
func (n *Node) rewrapAll(ctx context.Context) (int, error) {
	wrap := router.Rewrap{From: n.master, To: n.master}
	command := metafsm.Rekey{KeyCheck: n.keyCheck(), KeyHead: n.master.Head()}
	count := 0
	for {
		a, err := n.rekey(ctx, command)
		if err != nil {
			return count, err
		}
		count += a.Changed
		command = metafsm.Rekey{}
		for _, s := range n.groups.metaState.Secrets() {
			old, err := wrap.Secret(&s)
			if err != nil {
				return count, err
			}
			if old && len(command.Secrets) < rekeyBatch {
				command.Secrets = append(command.Secrets, s)
			}
		}
		if len(command.Secrets) == 0 {
			return count, nil
		}
	}
}

func (n *Node) rekey(ctx context.Context, c metafsm.Rekey) (a metafsm.RekeyAnswer, err error) {
	answer, err := n.groups.meta.Propose(ctx, metafsm.RekeyOp.Encode(c))
	if err != nil {
		return a, heal(id.Meta, err)
	}
	return metafsm.RekeyOp.Answer(answer)
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
