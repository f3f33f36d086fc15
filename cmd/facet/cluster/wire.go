package cluster

import (
	"time"

	"facet/internal/id"
)

// pathJoin is the path on which the inviting machine accepts a joinRequest (POST).
const pathJoin = "/join"

const (
	wireBytesMax = 256 << 10
	// wireTimeout is the longest time for one exchange between the two machines.
	wireTimeout = 15 * time.Second
	// skewMax is the largest accepted difference between the clocks of the two
	// machines. A cluster tolerates more, but before a node joins the clock is easy to
	// set.
	skewMax = time.Minute
)

// joinRequest asks for what a node needs. The keys of the certificate requests stay
// on the joining machine.
type joinRequest struct {
	Secret        []byte    `json:"secret"`
	Node          id.Node   `json:"node"`
	Name          string    `json:"name"`
	Hosts         []string  `json:"hosts"`
	Request       []byte    `json:"request"`
	ServerRequest []byte    `json:"server_request"`
	StatusRequest []byte    `json:"status_request"`
	Pack          string    `json:"pack"`
	Packs         []string  `json:"packs,omitempty"` // all that the machine has
	Version       string    `json:"version"`
	Time          time.Time `json:"time"`
}

// joinAnswer contains what a node needs.
type joinAnswer struct {
	Authorities []byte `json:"authorities"`
	Certificate []byte `json:"certificate"`
	Server      []byte `json:"server"`
	Status      []byte `json:"status"`
	// ClusterKey and GossipKey are the contents of the key files.
	ClusterKey []byte   `json:"cluster_key"`
	GossipKey  []byte   `json:"gossip_key"`
	Seeds      []string `json:"seeds"`
	Region     string   `json:"region"`
	Cluster    string   `json:"cluster"` // the authority's name
	Pack       string   `json:"pack"`    // the cluster's
}

// refusal is an answer other than success.
type refusal struct {
	Message string `json:"message"`
}
