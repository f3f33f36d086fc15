package wire

import (
	"time"

	"facet/internal/id"
)

// Paths of the admin port about certificates, shared keys and moves.
const (
	// PathCertificates takes a CertificateOrder (POST) and answers with a
	// CertificateAnswer.
	PathCertificates = "/admin/certificates"
	// PathRings takes a RingOrder (POST), replaces a shared key and answers with a
	// RingAnswer.
	PathRings = "/admin/rings"
	// PathPlan answers with a Plan (GET).
	PathPlan = "/admin/plan"
)

// The rings of keys that all nodes share.
const (
	RingGossip  = "gossip"  // encrypts gossip
	RingCluster = "cluster" // wraps the galleries' keys
)

// Credentials reports the certificates and shared keys that a node uses now.
type Credentials struct {
	// NodeEnds, ServerEnds and AuthorityEnds are the ends of its certificates.
	NodeEnds      time.Time `json:"node_ends"`
	ServerEnds    time.Time `json:"server_ends"`
	AuthorityEnds time.Time `json:"authority_ends"`
	// StatusEnds is the end of the certificate with which commands on its machine read the
	// state of the cluster; zero without one.
	StatusEnds time.Time `json:"status_ends,omitzero"`
	// Issuer is the fingerprint of the authority that issued the node's certificate. Trusted
	// lists the fingerprints of all authorities that the node trusts.
	Issuer  string   `json:"issuer"`
	Trusted []string `json:"trusted"`
	// Gossip and Cluster list its shared keys, the one in use first.
	Gossip  []KeyInfo `json:"gossip"`
	Cluster []KeyInfo `json:"cluster"`
}

// KeyInfo identifies a shared key and reveals nothing of it.
type KeyInfo struct {
	ID    string    `json:"id"`
	Since time.Time `json:"since"` // when the key or its file was made
	// From is the place of the key if the node only reads it there; empty for a file.
	From string `json:"from,omitempty"`
}

// CertificateOrder asks a node for requests for new certificates, or hands certificates to it.
type CertificateOrder struct {
	Node id.Node `json:"node"`
	// Authorities has the authorities that the node trusts from now on (PEM); empty changes
	// nothing.
	Authorities []byte `json:"authorities,omitempty"`
	// Certificate, Server and Status, the status certificate, are signed for the keys of the last
	// request (PEM); all or none.
	Certificate []byte `json:"certificate,omitempty"`
	Server      []byte `json:"server,omitempty"`
	Status      []byte `json:"status,omitempty"`
}

// CertificateAnswer has requests for certificates (PKCS #10, PEM) and the hosts that the
// present certificates name. The keys stay on the node. The answer is empty if the order
// had certificates or authorities.
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
	// Nodes is the number of nodes that have the new key only.
	Nodes int `json:"nodes"`
	// Rewrapped is how many secrets were wrapped again with the new cluster key.
	Rewrapped int `json:"rewrapped,omitempty"`
	// Resumed reports whether an interrupted rotation was continued.
	Resumed bool `json:"resumed,omitempty"`
}

// Plan lists the moves by which the cluster will balance itself.
type Plan struct {
	// Steps lists the moves that have not started, Moves those under way.
	Steps []PlanStep `json:"steps"`
	Moves []Move     `json:"moves"`
	// AtOnce is the most shards on the move at the same time.
	AtOnce int `json:"at_once"`
	// Shards has the planned number of replicas of each node, ordered by name.
	Shards []Share `json:"shards"`
}

// PlanStep moves replicas of a shard to other nodes.
type PlanStep struct {
	Shard id.Shard  `json:"shard"`
	From  []id.Node `json:"from"`
	To    []id.Node `json:"to"`
}

// Share has the numbers of replicas that a node holds now and by the plan.
type Share struct {
	Node id.Node `json:"node"`
	Name string  `json:"name"`
	Now  int     `json:"now"`
	Then int     `json:"then"`
	// LeadsThen is how many shards it will lead.
	LeadsThen int `json:"leads_then"`
}
