package id

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrMalformed is returned for a text that is not a lower-case UUID of 36
// characters.
var ErrMalformed = errors.New("id: not a lower-case UUID")

// UUID is the 16 bytes of an id (RFC 9562, §4).
type UUID [16]byte

// The kinds of id. Each is a UUID with its own type.
type (
	// Cluster names one founded cluster.
	Cluster struct{ UUID }
	// Node names a node's data directory: the process may move, the id stays.
	Node struct{ UUID }
	// Tenant names a customer of the service.
	Tenant struct{ UUID }
	// Gallery names a gallery of a tenant.
	Gallery struct{ UUID }
	// Application names an access identity that is bound to one gallery.
	Application struct{ UUID }
	// Subject names a registered person. It contains the number of its shard.
	Subject struct{ UUID }
	// Event names one registered face of a subject. It contains the number of its
	// shard.
	Event struct{ UUID }
	// Batch names a bulk registration. It contains the number of its shard.
	Batch struct{ UUID }
)

// ClusterLog is the reserved tenant that the cluster's own audit log belongs to. No tenant has this id:
// ids of tenants are UUIDs of version 7, and all bits of this one are set.
var ClusterLog = Tenant{UUID{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}}

// Operation identifies one write of one client, so that a retry is recognised. It
// is a hash, never shown to clients.
type Operation [16]byte

// Shard is the number of a Raft group that stores events, from 1. Group 0 is meta.
type Shard uint16

// Meta is the number of the Raft group that stores the cluster's own records.
const Meta Shard = 0

// MaxShard is the largest shard number that fits an id's shard field (12 bits).
const MaxShard Shard = 1<<12 - 1

// String returns the 36 characters of u.
func (u UUID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], u[0:4])
	b[8] = '-'
	hex.Encode(b[9:13], u[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], u[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], u[8:10])
	b[23] = '-'
	hex.Encode(b[24:36], u[10:16])
	return string(b[:])
}

// IsZero reports whether u is the nil UUID, which names nothing.
func (u UUID) IsZero() bool { return u == UUID{} }

// MarshalText returns the 36 characters of u.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText parses 36 characters.
func (u *UUID) UnmarshalText(b []byte) error {
	v, err := Parse(string(b))
	if err != nil {
		return err
	}
	*u = v
	return nil
}

// MarshalBinary returns the 16 bytes of u, the form in logs and between nodes.
func (u UUID) MarshalBinary() ([]byte, error) { return u[:], nil }

// UnmarshalBinary reads 16 bytes.
func (u *UUID) UnmarshalBinary(b []byte) error {
	if len(b) != len(u) {
		return fmt.Errorf("%w: %d bytes", ErrMalformed, len(b))
	}
	copy(u[:], b)
	return nil
}

// Shard returns the shard number in a subject's, event's or batch's id.
func (u UUID) Shard() Shard { return Shard(u[6]&0x0f)<<8 | Shard(u[7]) }

// Parse parses a lower-case UUID of 36 characters. It returns ErrMalformed for any
// other text.
func Parse(s string) (UUID, error) {
	var u UUID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return UUID{}, ErrMalformed
	}
	compact := s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36]
	for i := range len(compact) {
		if c := compact[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return UUID{}, ErrMalformed
		}
	}
	if _, err := hex.Decode(u[:], []byte(compact)); err != nil {
		return UUID{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return u, nil
}

// Random returns a version 4 UUID made of 16 bytes from a secure random source (RFC
// 9562, §5.4). It overwrites the version and variant bits of b.
func Random(b [16]byte) UUID {
	u := UUID(b)
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// Derive returns the version 8 UUID of (key, purpose, op), which names shard (RFC
// 9562, §5.8). Equal operations get equal ids on every node. The third group of its
// text is 8 and the shard's number in hexadecimal. shard must be at most MaxShard.
func Derive(key []byte, purpose string, op Operation, shard Shard) UUID {
	if shard > MaxShard {
		panic(fmt.Sprintf("bug: shard %d does not fit an id", shard))
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(purpose))
	mac.Write([]byte{0})
	mac.Write(op[:])
	var u UUID
	copy(u[:], mac.Sum(nil))
	u[6] = 0x80 | byte(shard>>8)
	u[7] = byte(shard)
	u[8] = u[8]&0x3f | 0x80
	return u
}

// Member is a node's identity in Raft groups: its id, a dot, and the epoch of its
// data directory in 8 hexadecimal digits. A node that lost its directory comes back
// as another member, because it must not vote again on what it has forgotten.
type Member string

// NewMember returns the member of a node's id and its data directory's epoch.
func NewMember(node Node, epoch uint32) Member {
	return Member(fmt.Sprintf("%s.%08x", node, epoch))
}

// Node returns the node of m, or ErrMalformed.
func (m Member) Node() (Node, error) {
	if len(m) != 36+1+8 || m[36] != '.' {
		return Node{}, ErrMalformed
	}
	u, err := Parse(string(m[:36]))
	return Node{u}, err
}
