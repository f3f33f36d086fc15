//go:build chaos

package serve

import (
	"time"

	"facet/cmd/facet/config"
	"facet/node"
	"facet/node/nodetest"
)

const (
	chaosPack = "0123456789abcdef-chaos"
	// chaosErase is so short that attacks of a minute meet snapshots, cuts of the log and
	// copies of its file: there is one of each every quarter of it.
	chaosErase = 40 * time.Second
)

// Pack gives the identity of the pack that openFaces has.
func Pack(string) (string, error) { return chaosPack, nil }

// openFaces takes templates from a hash of the image's bytes, for tests that attack
// the cluster: the models' speed would hide its own. What was erased leaves the disk
// soon.
func openFaces(_ config.Settings, cfg *node.Config) (closing func(), err error) {
	cfg.Pack, cfg.Extractor, cfg.Table = chaosPack, nodetest.HashExtractor{}, nodetest.Table()
	cfg.EraseWithin = chaosErase
	return func() {}, nil
}
