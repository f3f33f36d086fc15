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
	// chaosErase is so short that attacks of a minute meet snapshots, log
	// compactions and copies of its file. Each occurs once in every quarter of it.
	chaosErase = 40 * time.Second
)

// Pack returns the identity of the pack that openFaces uses.
func Pack(string) (string, error) { return chaosPack, nil }

// openFaces sets an extractor that derives templates from a hash of the image's
// bytes. Tests that attack the cluster use it, because the models' speed would hide
// the cluster's own. Erased data leaves the disk soon.
func openFaces(_ config.Settings, cfg *node.Config) (closing func(), err error) {
	cfg.Pack, cfg.Extractor, cfg.Table = chaosPack, nodetest.HashExtractor{}, nodetest.Table()
	cfg.EraseWithin = chaosErase
	return func() {}, nil
}
