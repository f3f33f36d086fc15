package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/loop"
	"facet/node/replicas"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/secrets"
)

const (
	// ringFanOut is the most nodes that take a step at once. Each may take ringTimeout.
	ringFanOut  = 16
	ringTimeout = 10 * time.Second
	// rekeyBatch is the most secrets in one command, of about 150 bytes each.
	rekeyBatch = 500
	// gossipRest is a pause for packets on their way that the old key has encrypted.
	gossipRest = time.Second

	// eraseSlack is the largest difference to expect between the clocks of two nodes.
	eraseSlack = time.Minute

	keyCheckPurpose = "cluster-key-check"
)

// KeyCheck returns a hash that identifies the cluster's key and reveals nothing of it.
func (k *Keys) KeyCheck() []byte {
	mac := k.master.MAC(keyCheckPurpose, nil)
	return mac[:]
}

// HasKey reports whether this node has the key whose KeyCheck was stored as check.
func (k *Keys) HasKey(check []byte) bool {
	return slices.ContainsFunc(k.master.MACs(keyCheckPurpose, nil), func(mac [32]byte) bool { return string(mac[:]) == string(check) })
}

// Rotate replaces a key that all nodes share. All nodes add the new key, then all use it,
// and only then all retire the other keys. So every node can always open what another node
// seals. All nodes of the cluster must answer. If an earlier rotation was interrupted,
// Rotate completes that rotation and starts no other. Any node accepts the order; meta's
// leader carries it out.
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
	return k.ReplaceKey(ctx, o)
}

// ReplaceKey takes the steps of a rotation, without the checks of Rotate. Meanwhile meta
// refuses a secret that another key has wrapped (metafsm.OtherKey).
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
	k.in.Acted(router.Act{
		Log: id.ClusterLog, Operation: "replace a shared key",
		Reason: fmt.Sprintf("%s key %s on %d nodes, %d secrets wrapped again", o.Ring, a.Key.ID, a.Nodes, a.Rewrapped),
	})
	k.cfg.Log.InfoContext(ctx, "a shared key was replaced", "ring", o.Ring, "key", a.Key.ID, "nodes", a.Nodes)
	return a, nil
}

// ringKeyFor returns the key of an interrupted rotation, or a new key.
func (k *Keys) ringKeyFor(ctx context.Context, name string) (key ringKey, resumed bool, err error) {
	states, err := k.stepAll(ctx, ringOrder{Ring: name, Step: ringLook})
	if err != nil {
		return key, false, err
	}
	r, _ := k.named(name)
	own, key := r.infos(), r.newest()
	ended, fixed := true, false
	for _, s := range states {
		place := s[0].From
		fixed = fixed || place != ""
		if place != "" && slices.ContainsFunc(s, func(k wire.KeyInfo) bool { return !slices.ContainsFunc(own, k.Same) }) {
			return key, false, router.Errorf(router.InvalidRequest, "", "a node has a %s key that meta's leader does not have: add it to the key files of all nodes, "+
				"start them again, and repeat the command", name)
		}
		ended = ended && len(s) == 1 && slices.EqualFunc(s, own, wire.KeyInfo.Same)
		if !slices.ContainsFunc(own, func(k wire.KeyInfo) bool { return k.ID == s[0].ID }) {
			return key, false, router.Errorf(router.InvalidRequest, "", "a node seals with a key that meta's leader does not have: give all nodes the same key file")
		}
	}
	if ended && fixed {
		return key, false, router.Errorf(router.InvalidRequest, "", "the %s key of a node comes from %s or %s (facet cluster status names it), and %v",
			name, fromCredential, fromCommand, errFixed)
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

// stepAll lets every node of the cluster take a step, this node first, and returns their
// rings. The error names the nodes that failed.
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
				err = errors.New("it answered without a key")
			}
			if err != nil {
				errs[i] = fmt.Errorf("node %s: %w", m.Name, err)
			}
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, router.Errorf(router.Unavailable, "", "every node must take part (remove those that are gone for good); "+
			"give the order again, and the rotation continues from here: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return append(states, own), nil
}

// stepOwn takes a step on this node. When a cluster key retires, it also erases from the
// disk the secrets that the key has wrapped.
func (k *Keys) stepOwn(r *ring, o ringOrder) ([]wire.KeyInfo, error) {
	infos, err := r.step(o)
	if err != nil || o.Ring != wire.RingCluster || o.Step != ringRetire {
		return infos, err
	}
	if err := k.in.Replicas.MetaGroup().Erase(time.Now().Add(eraseSlack)); err != nil {
		return nil, fmt.Errorf("erase the secrets of the old key from the disk: %w", err)
	}
	return infos, nil
}

// takeStep answers stepAll.
func (k *Keys) takeStep(ctx context.Context, o ringOrder) ([]wire.KeyInfo, error) {
	r, err := k.named(o.Ring)
	if err == nil && o.Step == ringRetire && o.Ring == wire.RingCluster {
		err = k.in.Records.SyncMeta(ctx) // the rewrapped secrets must be here before the log is cut
	}
	if err != nil {
		return nil, err
	}
	return k.stepOwn(r, o)
}

// rewrapAll wraps every secret of meta with the cluster's new key, which all nodes use by
// now. After the first command meta refuses secrets that another key has wrapped.
func (k *Keys) rewrapAll(ctx context.Context) (int, error) {
	wrap := secrets.Rewrap{From: k.master, To: k.master}
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
