package membership

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"facet/internal/id"
)

// Bounds of a node's metadata.
const (
	metaBytesMax    = 512 // memberlist's limit: larger metadata makes it panic
	addressBytesMax = 160
	zoneBytesMax    = 64
	packBytesMax    = 64
	versionBytesMax = 32
	weightMax       = 1000
	votersMax       = 7
)

// ErrMeta is returned when a node's description of itself is malformed or too large.
var ErrMeta = errors.New("membership: bad node metadata")

// Meta is a node's description of itself. It travels in gossip and is only a hint.
// All of it must fit in 512 bytes of CBOR.
type Meta struct {
	// Member is the node's identity in Raft groups.
	Member id.Member
	// Incarnation distinguishes two processes of one node: the later one has the
	// larger number. Open sets a zero Incarnation to the time in milliseconds.
	Incarnation uint64
	// Address is the host:port at which other nodes reach this one.
	Address string
	// PublicURL is the base URL of the service on this node, without a trailing
	// slash.
	PublicURL string
	// AdminAddress is the host:port of the admin port.
	AdminAddress string
	// Zone is the failure domain: replicas of a shard are spread over zones.
	Zone string
	// Weight is the node's share of shards relative to others, 1 to 1000.
	Weight uint16
	// Pack is the short hash of the model pack that the node has loaded.
	Pack string
	// Version is the version of the node's software.
	Version string
	// Level is the level of commands that the node's software knows
	// (metafsm.Level). 0 means 1.
	Level uint32
	// Cluster is the founded cluster of the node. It is zero until the node belongs to
	// one.
	Cluster id.Cluster
	// MetaVoters names the probable voters of the meta group, at most 7.
	MetaVoters []id.Node
}

// wireMeta is the wire form of Meta: a CBOR map with small integer keys. Nodes that
// don't know a new field ignore it.
type wireMeta struct {
	Member       string   `cbor:"1,keyasint"`
	Incarnation  uint64   `cbor:"2,keyasint"`
	Address      string   `cbor:"3,keyasint"`
	PublicURL    string   `cbor:"4,keyasint,omitempty"`
	AdminAddress string   `cbor:"5,keyasint,omitempty"`
	Zone         string   `cbor:"6,keyasint,omitempty"`
	Weight       uint16   `cbor:"7,keyasint"`
	Pack         string   `cbor:"8,keyasint,omitempty"`
	Version      string   `cbor:"9,keyasint,omitempty"`
	Cluster      []byte   `cbor:"10,keyasint,omitempty"`
	MetaVoters   [][]byte `cbor:"11,keyasint,omitempty"`
	Level        uint32   `cbor:"12,keyasint,omitempty"`
	// 13 was another field.
}

// decMode limits how much work the metadata of another node can cause.
var decMode = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:  4,
		MaxArrayElements: 16,
		MaxMapPairs:      32,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		UTF8:             cbor.UTF8RejectInvalid,
	}.DecMode()
	if err != nil {
		panic("bug: cbor options: " + err.Error())
	}
	return m
}()

// encode returns m's bytes, at most metaBytesMax of them, or ErrMeta.
func (m Meta) encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	w := wireMeta{
		Member: string(m.Member), Incarnation: m.Incarnation, Address: m.Address,
		PublicURL: m.PublicURL, AdminAddress: m.AdminAddress, Zone: m.Zone,
		Weight: m.Weight, Pack: m.Pack, Version: m.Version, Level: m.Level,
	}
	if !m.Cluster.IsZero() {
		w.Cluster = m.Cluster.UUID[:]
	}
	for _, n := range m.MetaVoters {
		w.MetaVoters = append(w.MetaVoters, n.UUID[:])
	}
	b, err := cbor.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMeta, err)
	}
	if len(b) > metaBytesMax {
		return nil, fmt.Errorf("%w: %d bytes, at most %d fit: shorten addresses or names", ErrMeta, len(b), metaBytesMax)
	}
	return b, nil
}

// decodeMeta parses a peer's metadata. It returns ErrMeta for anything unexpected.
func decodeMeta(b []byte) (Meta, error) {
	if len(b) > metaBytesMax {
		return Meta{}, fmt.Errorf("%w: %d bytes", ErrMeta, len(b))
	}
	var w wireMeta
	if err := decMode.Unmarshal(b, &w); err != nil {
		return Meta{}, fmt.Errorf("%w: %w", ErrMeta, err)
	}
	m := Meta{
		Member: id.Member(w.Member), Incarnation: w.Incarnation, Address: w.Address,
		PublicURL: w.PublicURL, AdminAddress: w.AdminAddress, Zone: w.Zone,
		Weight: w.Weight, Pack: w.Pack, Version: w.Version, Level: w.Level,
	}
	switch len(w.Cluster) {
	case 0:
	case 16:
		m.Cluster.UUID = id.UUID(w.Cluster)
	default:
		return Meta{}, fmt.Errorf("%w: cluster id of %d bytes", ErrMeta, len(w.Cluster))
	}
	for _, v := range w.MetaVoters {
		if len(v) != 16 {
			return Meta{}, fmt.Errorf("%w: voter id of %d bytes", ErrMeta, len(v))
		}
		m.MetaVoters = append(m.MetaVoters, id.Node{UUID: id.UUID(v)})
	}
	return m, m.check()
}

// check returns ErrMeta unless m is within the bounds of this package.
func (m Meta) check() error {
	if _, err := m.Member.Node(); err != nil {
		return fmt.Errorf("%w: member %.48q", ErrMeta, string(m.Member))
	}
	if m.Address == "" || !isAddress(m.Address) {
		return fmt.Errorf("%w: address %.48q is not host:port", ErrMeta, m.Address)
	}
	if m.AdminAddress != "" && !isAddress(m.AdminAddress) {
		return fmt.Errorf("%w: admin address %.48q is not host:port", ErrMeta, m.AdminAddress)
	}
	if m.Weight == 0 || m.Weight > weightMax {
		return fmt.Errorf("%w: weight %d is not 1 to %d", ErrMeta, m.Weight, weightMax)
	}
	if len(m.MetaVoters) > votersMax {
		return fmt.Errorf("%w: %d voters", ErrMeta, len(m.MetaVoters))
	}
	for _, f := range []struct {
		name, text string
		bytesMax   int
	}{
		{"public URL", m.PublicURL, addressBytesMax},
		{"zone", m.Zone, zoneBytesMax},
		{"pack", m.Pack, packBytesMax},
		{"version", m.Version, versionBytesMax},
	} {
		if len(f.text) > f.bytesMax || !isPrintable(f.text) {
			return fmt.Errorf("%w: %s of %d bytes is too long or not printable", ErrMeta, f.name, len(f.text))
		}
	}
	return nil
}

// isAddress reports whether s looks like host:port. The host is not looked up.
func isAddress(s string) bool {
	if len(s) > addressBytesMax || !isPrintable(s) || strings.ContainsAny(s, " /@") {
		return false
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || port == "" || len(port) > 5 {
		return false
	}
	number := 0
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
		number = number*10 + int(c-'0')
	}
	return number > 0 && number < 1<<16
}

// isPrintable reports whether s can be written in a log line as it is.
func isPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
