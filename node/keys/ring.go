package keys

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/node/datadir"
	"facet/node/wire"
	"facet/shard/seal"
)

const (
	// ringMax bounds the keys of a ring: two while one takes over, and what rotations
	// that were given up have left.
	ringMax = 8
	// ringBytesMax bounds a key file.
	ringBytesMax = ringMax * 160
	// ringIDBytes is how much of a hash names a key.
	ringIDBytes = 6
)

// ring are keys that all nodes share: the first one seals, all open. They lie in a
// file with a line for each, 64 hexadecimal digits and the time when it was made. Its
// methods are safe for concurrent use.
type ring struct {
	file  string
	apply func(secrets [][]byte) error // has the new keys used

	mu   sync.Mutex // guards keys and the file
	keys []ringKey
}

type ringKey struct {
	secret []byte
	since  time.Time // zero: the file does not say
}

// openRing reads a key file. One with a bare key, as older versions wrote it, is good.
func openRing(file string) (*ring, error) {
	keys, err := readRing(file)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(file); err == nil && keys[0].since.IsZero() {
		keys[0].since = info.ModTime().UTC().Truncate(time.Second)
	}
	return &ring{file: file, keys: keys}, nil
}

func readRing(file string) ([]ringKey, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, ringBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	keys, err := parseRing(raw)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", filepath.Base(file), err)
	}
	return keys, nil
}

// errRing says what a key file looks like.
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

// id names a key; who knows the name knows nothing of the key.
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

func infosOf(keys []ringKey) []wire.KeyInfo {
	list := make([]wire.KeyInfo, len(keys))
	for i, k := range keys {
		list[i] = wire.KeyInfo{ID: k.id(), Since: k.since}
	}
	return list
}

// infos describes the keys, the first one first.
func (r *ring) infos() []wire.KeyInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return infosOf(r.keys)
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

// ringStep is one step of a rotation, on one node.
type ringStep string

const (
	ringLook   ringStep = "look"   // changes nothing
	ringAdd    ringStep = "add"    // the key opens from now on
	ringUse    ringStep = "use"    // it seals, too
	ringRetire ringStep = "retire" // no other opens any more
)

// ringOrder has a node take a step. Only the first step carries the key itself.
type ringOrder struct {
	Ring   string    `json:"ring"`
	Step   ringStep  `json:"step"`
	Key    string    `json:"key,omitempty"` // its id
	Secret []byte    `json:"secret,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

var errNoKey = errors.New("this node does not have the key that is to be used")

// step changes the ring, its file first: what a node has confirmed it still knows
// after a crash. A step that was done before changes nothing. The file may be shared
// by several nodes of one machine.
func (r *ring) step(o ringOrder) ([]wire.KeyInfo, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := stepped(r.keys, o)
	if err != nil {
		return nil, err
	}
	if o.Step != ringLook {
		if err := datadir.WriteSynced(r.file, formatRing(next)); err != nil {
			return nil, fmt.Errorf("the key file can't be changed: %w", err)
		}
		if err := r.apply(secretsOf(next)); err != nil {
			return nil, err
		}
		r.keys = next
	}
	return infosOf(next), nil
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
