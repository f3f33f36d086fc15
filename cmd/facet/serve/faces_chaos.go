//go:build chaos

package serve

import (
	"facet/cmd/facet/config"
	"facet/node"
	"facet/node/nodetest"
)

const chaosPack = "0123456789abcdef-chaos"

// Pack gives the identity of the pack that openFaces has.
func Pack(string) (string, error) { return chaosPack, nil }

// openFaces takes templates from a hash of the image's bytes, for tests that attack
// the cluster: the models' speed would hide its own.
func openFaces(_ config.Settings, cfg *node.Config) (closing func(), err error) {
	cfg.Pack, cfg.Extractor, cfg.Table = chaosPack, nodetest.HashExtractor{}, nodetest.Table()
	return func() {}, nil
}
