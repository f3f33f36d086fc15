package keys

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/node/datadir"
	"facet/node/wire"
	"facet/shard/seal"
)

const (
	// ringMax is the most keys of a ring. A rotation has two, and rotations that were given
	// up leave further ones.
	ringMax = 8
	// ringBytesMax is the most bytes of a key file.
	ringBytesMax = ringMax * 160
	// ringIDBytes is the length of a key's id before it is written in hexadecimal.
	ringIDBytes = 6
)

// ring is a list of keys that all nodes share. The first key seals, and each key can open.
// Its source has a line for each key: 64 hexadecimal digits and the time when the key
// was made. A ring is safe for concurrent use.
type ring struct {
	source Source
	apply  func(secrets [][]byte) error // makes the node use new keys

	mu   sync.Mutex // guards keys and the source's file
	keys []ringKey
}

type ringKey struct {
	secret []byte
	since  time.Time // zero: the file does not say
}

// openRing reads the keys. It accepts a key without a time, such as one of "openssl rand -hex 32".
func openRing(ctx context.Context, from Source) (*ring, error) {
	keys, err := readRing(ctx, from)
	if err != nil {
		return nil, err
	}
	if from.place() != "" {
		now := time.Now().UTC().Truncate(time.Second)
		for i := range keys {
			if keys[i].since.IsZero() {
				keys[i].since = now.Add(time.Duration(i) * time.Second) // the last one is the newest
			}
		}
	} else if info, err := os.Stat(from.File); err == nil && keys[0].since.IsZero() {
		keys[0].since = info.ModTime().UTC().Truncate(time.Second)
	}
	return &ring{source: from, keys: keys}, nil
}

// Check returns an error if a source has no keys that a node can use.
func Check(ctx context.Context, from Source) error {
	_, err := readRing(ctx, from)
	return err
}

func readRing(ctx context.Context, from Source) ([]ringKey, error) {
	raw, err := from.Read(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := parseRing(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from.name(), err)
	}
	return keys, nil
}

// errRing is returned for a malformed key file.
var errRing = fmt.Errorf("it must hold lines of %d hexadecimal digits, each with a time behind it or nothing, at most %d", 2*seal.KeyBytes, ringMax)

func parseRing(raw []byte) ([]ringKey, error) {
	if len(raw) > ringBytesMax {
		return nil, errRing
	}
	var keys []ringKey
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		secret, err := hex.DecodeString(fields[0])
		if err != nil || len(secret) != seal.KeyBytes || len(fields) > 2 || len(keys) == ringMax {
			return nil, errRing
		}
		k := ringKey{secret: secret}
		if len(fields) == 2 {
			if k.since, err = time.Parse(time.RFC3339, fields[1]); err != nil {
				return nil, errRing
			}
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errRing
	}
	return keys, nil
}

func formatRing(keys []ringKey) []byte {
	var b bytes.Buffer
	for _, k := range keys {
		b.WriteString(hex.EncodeToString(k.secret))
		if !k.since.IsZero() {
			b.WriteString(" " + k.since.UTC().Format(time.RFC3339))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// id returns a name for the key that reveals nothing of it.
func (k ringKey) id() string {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write([]byte("facet/key-name/1"))
	return hex.EncodeToString(mac.Sum(nil)[:ringIDBytes])
}

func newRingKey() (ringKey, error) {
	k := ringKey{secret: make([]byte, seal.KeyBytes), since: time.Now().UTC().Truncate(time.Second)}
	if _, err := rand.Read(k.secret); err != nil {
		return k, fmt.Errorf("make a key: %w", err)
	}
	return k, nil
}

func secretsOf(keys []ringKey) [][]byte {
	list := make([][]byte, len(keys))
	for i, k := range keys {
		list[i] = k.secret
	}
	return list
}

func (r *ring) describe(keys []ringKey) []wire.KeyInfo {
	list := make([]wire.KeyInfo, len(keys))
	for i, k := range keys {
		list[i] = wire.KeyInfo{ID: k.id(), Since: k.since, From: r.source.place()}
	}
	return list
}

// infos describes the keys, the first one first.
func (r *ring) infos() []wire.KeyInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.describe(r.keys)
}

// secrets returns the keys, the first one first.
func (r *ring) secrets() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return secretsOf(r.keys)
}

// newest returns the key that was made last.
func (r *ring) newest() ringKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.MaxFunc(r.keys, func(a, b ringKey) int { return a.since.Compare(b.since) })
}

// ringStep is one step of a rotation on one node.
type ringStep string

const (
	ringLook   ringStep = "look"   // changes nothing
	ringAdd    ringStep = "add"    // from now on the key opens
	ringUse    ringStep = "use"    // from now on the key seals, too
	ringRetire ringStep = "retire" // from now on no other key opens
)

// ringOrder orders a node to take a step. Only ringAdd has the key itself in Secret.
type ringOrder struct {
	Ring   string    `json:"ring"`
	Step   ringStep  `json:"step"`
	Key    string    `json:"key,omitempty"` // its id
	Secret []byte    `json:"secret,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

var errNoKey = errors.New("this node does not have the key of this rotation")

// step changes the ring. It writes the file first, so that a node that has confirmed a step
// keeps it after a crash. A repeated step changes nothing. Several nodes of one machine may
// share the file.
//
// A source that is not a file has all keys of the rotation already. The steps then change
// the memory only: after a restart the ring is as the source says, and opens both keys.
func (r *ring) step(o ringOrder) ([]wire.KeyInfo, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := stepped(r.keys, o)
	if err != nil {
		return nil, err
	}
	if o.Step != ringLook {
		place := r.source.place()
		if place != "" && len(next) > len(r.keys) {
			return nil, fmt.Errorf("its key comes from %s, and %w", place, errFixed)
		}
		if place == "" {
			if err := datadir.WriteSynced(r.source.File, formatRing(next)); err != nil {
				return nil, fmt.Errorf("the key file can't be changed: %w", err)
			}
		}
		if err := r.apply(secretsOf(next)); err != nil {
			return nil, err
		}
		r.keys = next
	}
	return r.describe(next), nil
}

// stepped returns the keys after a step.
func stepped(keys []ringKey, o ringOrder) ([]ringKey, error) {
	i := slices.IndexFunc(keys, func(k ringKey) bool { return k.id() == o.Key })
	if o.Step == ringAdd && i < 0 {
		k := ringKey{secret: o.Secret, since: o.Since}
		if len(k.secret) != seal.KeyBytes || k.id() != o.Key {
			return nil, errNoKey
		}
		return append(slices.Clone(keys[:min(len(keys), ringMax-1)]), k), nil
	}
	switch {
	case o.Step == ringLook || o.Step == ringAdd:
		return keys, nil
	case i < 0:
		return nil, errNoKey
	case o.Step == ringUse:
		return append([]ringKey{keys[i]}, slices.Delete(slices.Clone(keys), i, i+1)...), nil
	case o.Step == ringRetire:
		return []ringKey{keys[i]}, nil
	default:
		return nil, fmt.Errorf("there is no step %q", o.Step)
	}
}
