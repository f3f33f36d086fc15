package main

import "path/filepath"

const chartFolder = "deploy/helm/facet"

// chart writes the chart's archive and returns its name. Helm's own has the time of its making.
func (b *builder) chart() (string, error) {
	file := filepath.Join(b.dist, "facet-"+b.version+".tgz")
	b.say("chart %s", filepath.Base(file))
	return file, writeArchive(file, b.epoch, func(a archive) error {
		return a.add(filepath.Join(b.root, chartFolder), "facet", nil)
	})
}
