package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"facet/engine/models"
)

// copied is a result that is a copy of the file From.
type copied struct {
	From string `json:"from"`
	result
}

// copy places a copy.
func (s *setup) copy(c *copied, tmp string) error {
	data, err := os.ReadFile(filepath.Join(s.assets, filepath.FromSlash(c.From)))
	if err != nil {
		return err
	}
	return place(s.assets, tmp, c.result, bytes.NewReader(data))
}

// manifests returns the packs' manifests, each with its notice and the files that lie
// beside it in the repository.
func manifests() (list []text, err error) {
	for _, name := range models.Names() {
		raw, _ := models.Builtin(name)
		manifest, err := models.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("the manifest of the pack %s: %w", name, err)
		}
		dir := "packs/" + name + "/"
		files := models.BuiltinFiles(name)
		for _, file := range slices.Sorted(maps.Keys(files)) {
			list = append(list, text{dir + file, files[file]})
		}
		list = append(list, text{dir + models.ManifestName, raw}, text{dir + models.NoticeName, []byte(manifest.Notice())})
	}
	return list, nil
}
