//go:build chaos

package serve

import (
	"log/slog"
	"time"

	"facet/cmd/facet/config"
	"facet/node"
	"facet/node/nodetest"
)

const (
	chaosPack = "0123456789abcdef-chaos"
	// chaosErase is the time within which erased data leaves the disk. It is so short
	// that an attack of a minute meets snapshots, log compactions and copies of the
	// log's file. Each happens once in every quarter of chaosErase.
	chaosErase = 40 * time.Second
)

// Pack returns the identity of the pack that openFaces uses.
func Pack(string, string) (folder, identity string, err error) { return "", chaosPack, nil }

// PackOf returns the same.
func PackOf(string, string) (folder, identity string, err error) { return "", chaosPack, nil }

func adopt(config.Settings, *slog.Logger, error) bool { return false }

// openFaces sets an extractor that derives templates from a hash of the image's
// bytes, for tests that attack the cluster. Real models are so slow that such a
// test would measure them and not the cluster. It also sets chaosErase and a clock
// that can be wrong.
func openFaces(_ config.Settings, cfg *node.Config) (closing func(), err error) {
	cfg.Pack, cfg.Extractor, cfg.Table = chaosPack, nodetest.HashExtractor{}, nodetest.Table()
	cfg.EraseWithin = chaosErase
	cfg.Wall, closing = wrongClock()
	return closing, nil
}
