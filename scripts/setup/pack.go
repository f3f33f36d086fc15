package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"facet/engine/models"
	"facet/scripts/setup/convert"
)

// conversion says how an embedder is made of a fetched file (scripts/setup/convert).
type conversion struct {
	// Kind is mobileFaceNet or sface.
	Kind conversionKind `json:"kind"`
	From string         `json:"from"`
	// Dim is the number of the embedder's outputs.
	Dim   int    `json:"dim"`
	Model result `json:"model"`
	// Basis is that of a mobileFaceNet.
	Basis *result `json:"basis,omitempty"`
}

type conversionKind string

const (
	mobileFaceNet conversionKind = "mobileFaceNet"
	sface         conversionKind = "sface"
)

// copied is a result that is a copy of the file From.
type copied struct {
	From string `json:"from"`
	result
}

func (c *conversion) validate() error {
	switch {
	case c.Kind != mobileFaceNet && c.Kind != sface:
		return fmt.Errorf("kind %q is unknown", c.Kind)
	case (c.Kind == mobileFaceNet) != (c.Basis != nil):
		return fmt.Errorf("a mobileFaceNet, and no other, has a basis")
	}
	for _, r := range c.results() {
		if err := r.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (c *conversion) results() []result {
	if c.Basis == nil {
		return []result{c.Model}
	}
	return []result{c.Model, *c.Basis}
}

// convert makes an embedder.
func (s *setup) convert(c *conversion, tmp string) error {
	began := time.Now()
	src, err := os.ReadFile(filepath.Join(s.assets, filepath.FromSlash(c.From)))
	if err != nil {
		return err
	}
	var made convert.Result
	about := "in float32"
	if c.Kind == mobileFaceNet {
		made, err = convert.Embedder(src, c.Dim)
		about = fmt.Sprintf("twice as fast, %d numbers a face", c.Dim)
	} else {
		made.Model, err = convert.SFace(src)
	}
	if err != nil {
		return err
	}
	for i, r := range c.results() {
		data := [][]byte{made.Model, made.Basis}[i]
		if err := place(s.assets, tmp, r, bytes.NewReader(data)); err != nil {
			return fmt.Errorf("convert %s: %w (the conversion should give the same bytes everywhere: this is a bug)", c.From, err)
		}
	}
	s.say("  made     %-38s %9s from %s, %.1f s: %s\n", path.Base(c.Model.To), megabytes(c.Model.Size), path.Base(c.From), time.Since(began).Seconds(), about)
	return nil
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
