package keys

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
	"facet/node/loop"
	"facet/node/peer"
	"facet/node/replicas"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
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
	// levelPause is how often it checks.
	levelPause = 500 * time.Millisecond

	// eraseSlack is by how much the clocks of nodes may differ.
	eraseSlack = time.Minute

	keyCheckPurpose = "cluster-key-check"
)

// KeyCheck tells the cluster's key from others without telling what it is.
func (k *Keys) KeyCheck() []byte {
	mac := k.master.MAC(keyCheckPurpose, nil)
	return mac[:]
}

// HasKey reports whether this node has the key of which keyCheck was stored.
func (k *Keys) HasKey(check []byte) bool {
	return slices.ContainsFunc(k.master.MACs(keyCheckPurpose, nil), func(mac [32]byte) bool { return string(mac[:]) == string(check) })
}

// Rotate replaces a key that all nodes share: the new one is added on all of them,
// then used by all, and only then are others retired, so that at no moment a node
// can't open what another seals. All nodes of the cluster must answer. It ends a
// rotation that was interrupted instead of beginning another. It may be asked of any
// node and runs on meta's leader.
func (k *Keys) Rotate(ctx context.Context, o wire.RingOrder) (a wire.RingAnswer, err error) {
	if _, err := k.named(o.Ring); err != nil {
		return a, err
	}
	leader, ok := k.in.Replicas.MetaGroup().Leader()
	if !ok {
		return a, router.Errorf(router.Unavailable, "", "meta has no leader")
	}
	if leader == k.cfg.Self {
		return k.rotate(ctx, o)
	}
	return a, k.in.Peers.Ask(ctx, leader, methodRotate, o, &a)
}

func (k *Keys) rotate(ctx context.Context, o wire.RingOrder) (a wire.RingAnswer, err error) {
	if !k.in.Replicas.MetaGroup().IsLeader() {
		return a, replicas.NotHere(id.Meta)
	}
	if !k.rotating.TryLock() {
		return a, router.Errorf(router.InvalidRequest, "", "a key is being replaced already")
	}
	defer k.rotating.Unlock()
	if err := k.in.Records.SyncMeta(ctx); err != nil {
		return a, err
	}
	if r, ok := k.in.Replicas.Meta().Restoration(); ok && !r.Done {
		return a, router.Errorf(router.InvalidRequest, "", "a backup is being restored: end that first")
	}
	if err := k.mayRekey(ctx, o.Ring); err != nil {
		return a, err
	}
	return k.ReplaceKey(ctx, o)
}

// ReplaceKey takes the steps of a rotation; Rotate asks before whether it may begin. What comes into meta meanwhile is wrapped by
// the new key, or refused (metafsm.OtherKey).
func (k *Keys) ReplaceKey(ctx context.Context, o wire.RingOrder) (a wire.RingAnswer, err error) {
	key, resumed, err := k.ringKeyFor(ctx, o.Ring)
	if err != nil {
		return a, err
	}
	a = wire.RingAnswer{Ring: o.Ring, Key: wire.KeyInfo{ID: key.id(), Since: key.since}, Resumed: resumed}
	step := ringOrder{Ring: o.Ring, Step: ringAdd, Key: key.id(), Secret: key.secret, Since: key.since}
	if _, err := k.stepAll(ctx, step); err != nil {
		return a, err
	}
	step.Step, step.Secret = ringUse, nil
	if _, err := k.stepAll(ctx, step); err != nil {
		return a, err
	}
	if o.Ring == wire.RingCluster {
		if a.Rewrapped, err = k.rewrapAll(ctx); err != nil {
			return a, err
		}
	} else if err := loop.Pause(ctx, gossipRest); err != nil {
		return a, err
	}
	step.Step = ringRetire
	states, err := k.stepAll(ctx, step)
	if err != nil {
		return a, err
	}
	a.Nodes = len(states)
	k.cfg.Log.Info("a shared key was replaced", "ring", o.Ring, "key", a.Key.ID, "nodes", a.Nodes)
	return a, nil
}

// mayRekey refuses to change the cluster's key while a node may run software that does
// not know the command for it: such a node would end.
func (k *Keys) mayRekey(ctx context.Context, ring string) error {
	if ring != wire.RingCluster {
		return nil
	}
	for late := time.Now().Add(levelWait); ; {
		now := k.in.Replicas.Meta().Level()
		if now >= metafsm.LevelRekey {
			return nil
		}
		var old []string
		for _, r := range k.in.Replicas.Meta().Nodes() {
			if r.State != metafsm.NodeRemoved && r.Knows() < metafsm.LevelRekey {
				old = append(old, r.Name)
			}
		}
		if len(old) > 0 {
			return router.Errorf(router.InvalidRequest, "", "the cluster's key can be changed from level %d on, and the cluster is at level %d: "+
				"upgrade %s first (facet status shows versions)", metafsm.LevelRekey, now, strings.Join(old, ", "))
		}
		if time.Now().After(late) {
			return &router.Error{Kind: router.Unavailable, Message: "the cluster is not at its new level yet; try again", RetryAfter: levelWait}
		}
		if err := loop.Pause(ctx, levelPause); err != nil {
			return err
		}
	}
}

// ringKeyFor returns the key of a rotation that was interrupted, or else a new one.
func (k *Keys) ringKeyFor(ctx context.Context, name string) (key ringKey, resumed bool, err error) {
	states, err := k.stepAll(ctx, ringOrder{Ring: name, Step: ringLook})
	if err != nil {
		return key, false, err
	}
	r, _ := k.named(name)
	own, key := r.infos(), r.newest()
	ended := true
	for _, s := range states {
		ended = ended && len(s) == 1 && slices.EqualFunc(s, own, wire.KeyInfo.Same)
		if !slices.ContainsFunc(own, func(k wire.KeyInfo) bool { return k.ID == s[0].ID }) {
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
func (k *Keys) stepAll(ctx context.Context, o ringOrder) ([][]wire.KeyInfo, error) {
	r, err := k.named(o.Ring)
	if err != nil {
		return nil, err
	}
	own, err := k.stepOwn(r, o)
	if err != nil {
		return nil, router.Errorf(router.Unavailable, "", "node %s: %v", k.cfg.Name, err)
	}
	var nodes []metafsm.Node
	for _, m := range k.in.Replicas.Meta().Nodes() {
		if m.State != metafsm.NodeRemoved && m.Member != k.cfg.Self {
			nodes = append(nodes, m)
		}
	}
	states, errs := make([][]wire.KeyInfo, len(nodes)), make([]error, len(nodes))
	var work sync.WaitGroup
	slots := make(chan struct{}, ringFanOut)
	for i, m := range nodes {
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, ringTimeout)
			defer cancel()
			err := k.in.Peers.Ask(ctx, m.Member, methodRing, o, &states[i])
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
func (k *Keys) stepOwn(r *ring, o ringOrder) ([]wire.KeyInfo, error) {
	infos, err := r.step(o)
	if err != nil || o.Ring != wire.RingCluster || o.Step != ringRetire {
		return infos, err
	}
	if err := k.in.Replicas.MetaGroup().Erase(time.Now().Add(eraseSlack)); err != nil {
		return nil, fmt.Errorf("take what the old key has wrapped off the disk: %w", err)
	}
	return infos, nil
}

// serveRing answers stepAll.
func (k *Keys) serveRing(ctx context.Context, body []byte) ([]byte, error) {
	var o ringOrder
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("read an order about a shared key: %w", err)
	}
	r, err := k.named(o.Ring)
	if err == nil && o.Step == ringRetire && o.Ring == wire.RingCluster {
		err = k.in.Records.SyncMeta(ctx) // what was wrapped again must be here before the log is cut
	}
	if err != nil {
		return nil, err
	}
	infos, err := k.stepOwn(r, o)
	if err != nil {
		return nil, err
	}
	return json.Marshal(infos)
}

// serveRotate answers Rotate.
func (k *Keys) serveRotate(ctx context.Context, body []byte) ([]byte, error) {
	var o wire.RingOrder
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("read an order about a shared key: %w", err)
	}
	a, err := k.rotate(ctx, o)
	if err != nil {
		return nil, peer.Fault{Err: err}
	}
	return json.Marshal(a)
}

// rewrapAll wraps every secret of meta with the cluster's new key, which all nodes use
// by now. The first command has meta refuse secrets that come late, wrapped by another.
func (k *Keys) rewrapAll(ctx context.Context) (int, error) {
	wrap := router.Rewrap{From: k.master, To: k.master}
	command := metafsm.Rekey{KeyCheck: k.KeyCheck(), KeyHead: k.master.Head()}
	count := 0
	for {
		a, err := k.rekey(ctx, command)
		if err != nil {
			return count, err
		}
		count += a.Changed
		command = metafsm.Rekey{}
		for _, s := range k.in.Replicas.Meta().Secrets() {
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

func (k *Keys) rekey(ctx context.Context, c metafsm.Rekey) (a metafsm.RekeyAnswer, err error) {
	answer, err := k.in.Replicas.MetaGroup().Propose(ctx, metafsm.RekeyOp.Encode(c))
	if err != nil {
		return a, replicas.Heal(id.Meta, err)
	}
	return metafsm.RekeyOp.Answer(answer)
}
