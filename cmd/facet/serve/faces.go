//go:build !chaos

package serve

import (
	"facet/cmd/facet/config"
	"facet/node"
)

// openFaces puts the face engine into a node's configuration; the caller closes it.
func openFaces(s config.Settings, cfg *node.Config) (closing func(), err error) {
	eng, err := openEngine(s)
	if err != nil {
		return nil, err
	}
	cfg.Pack, cfg.Extractor, cfg.Table = eng.Pack().ID, eng, eng.Table()
	return eng.Close, nil
}
