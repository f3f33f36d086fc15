package wire

import (
	"time"

	"facet/internal/id"
)

// Paths of the admin port about what nodes trust each other by.
const (
	// PathCertificates takes a CertificateOrder (POST) and answers with a
	// CertificateAnswer.
	PathCertificates = "/admin/certificates"
	// PathRings takes a RingOrder (POST): it replaces a shared key and answers with a
	// RingAnswer.
	PathRings = "/admin/rings"
	// PathPlan gives the moves by which the cluster will balance itself (GET): Plan.
	PathPlan = "/admin/plan"
)

// The rings of keys that all nodes share.
const (
	RingGossip  = "gossip"  // encrypts gossip
	RingCluster = "cluster" // wraps the galleries' keys
)

// Credentials are what a node and others trust each other by, as it tells itself.
type Credentials struct {
	// NodeEnds, ServerEnds and AuthorityEnds are when its certificates end.
	NodeEnds      time.Time `json:"node_ends"`
	ServerEnds    time.Time `json:"server_ends"`
	AuthorityEnds time.Time `json:"authority_ends"`
	// StatusEnds is when the certificate ends by which commands on its machine look at the
	// cluster; zero if there is none.
	StatusEnds time.Time `json:"status_ends,omitzero"`
	// Issuer is the fingerprint of the authority that issued the node's certificate,
	// Trusted are those of all that it trusts.
	Issuer  string   `json:"issuer"`
	Trusted []string `json:"trusted"`
	// Gossip and Cluster are its shared keys, the one in use first.
	Gossip  []KeyInfo `json:"gossip"`
	Cluster []KeyInfo `json:"cluster"`
}

// KeyInfo tells a shared key from others without telling what it is.
type KeyInfo struct {
	ID    string    `json:"id"`
	Since time.Time `json:"since"` // when it was made, or its file was
}

// CertificateOrder has a node make a request for new certificates, or take them.
type CertificateOrder struct {
	Node id.Node `json:"node"`
	// Authorities, if given, is what the node is to trust from now on (PEM).
	Authorities []byte `json:"authorities,omitempty"`
	// Certificate and Server are signed for the last request's keys (PEM); both or none.
	Certificate []byte `json:"certificate,omitempty"`
	Server      []byte `json:"server,omitempty"`
	// Status is a third one beside them, which software before 0.3.1 neither brings nor takes.
	Status []byte `json:"status,omitempty"`
}

// CertificateAnswer is a request for certificates (PKCS #10, PEM), whose keys the node
// keeps to itself, and the hosts that its present ones name. An order that brings
// certificates or authorities is answered without requests.
type CertificateAnswer struct {
	Request       []byte   `json:"request,omitempty"`
	ServerRequest []byte   `json:"server_request,omitempty"`
	StatusRequest []byte   `json:"status_request,omitempty"`
	Hosts         []string `json:"hosts,omitempty"`
}

// RingOrder asks for a new key in a ring.
type RingOrder struct {
	Ring string `json:"ring"`
}

// RingAnswer reports what a rotation did.
type RingAnswer struct {
	Ring string  `json:"ring"`
	Key  KeyInfo `json:"key"`
	// Nodes have the new key and no other any more.
	Nodes int `json:"nodes"`
	// Rewrapped is how many secrets the new cluster key has wrapped again.
	Rewrapped int `json:"rewrapped,omitempty"`
	// Resumed tells that an earlier rotation was ended.
	Resumed bool `json:"resumed,omitempty"`
}

// Plan is where the cluster wants its shards.
type Plan struct {
	// Steps are the moves that are still to come, not begun yet; Moves are under way.
	Steps []PlanStep `json:"steps"`
	Moves []Move     `json:"moves"`
	// AtOnce is how many shards are on the move at the same time.
	AtOnce int `json:"at_once"`
	// Shards are the planned numbers of replicas of each node, in order of names.
	Shards []Share `json:"shards"`
}

// PlanStep moves replicas of a shard to other nodes.
type PlanStep struct {
	Shard id.Shard  `json:"shard"`
	From  []id.Node `json:"from"`
	To    []id.Node `json:"to"`
}

// Share is what a node holds and shall hold.
type Share struct {
	Node id.Node `json:"node"`
	Name string  `json:"name"`
	Now  int     `json:"now"`
	Then int     `json:"then"`
	// LeadsThen is how many it shall lead.
	LeadsThen int `json:"leads_then"`
}
