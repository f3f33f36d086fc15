package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"facet/engine/models"
	"facet/scripts/setup/convert"
)

// extraPack is a model pack besides the default one, in packs/NAME/ with its
// manifest. Setup installs it when the user asks for it.
type extraPack struct {
	Name     string `json:"name"`
	Packages []pkg  `json:"packages"`
	// Copies are files that the default pack has too.
	Copies []copied `json:"copies"`
	// convert.Dlib makes Model from Index and Weights.
	Index   string `json:"index"`
	Weights string `json:"weights"`
	Model   result `json:"model"`
}

// copied is a result that is a copy of the file From.
type copied struct {
	From string `json:"from"`
	result
}

func (e *extraPack) validate() error {
	if _, ok := models.Builtin(e.Name); !ok || e.Name == "default" {
		return errors.New("engine/models has no manifest of that name")
	}
	for i := range e.Packages {
		if err := e.Packages[i].validate(); err != nil {
			return fmt.Errorf("package %d (%s): %w", i, e.Packages[i].Package, err)
		}
	}
	for _, r := range e.results() {
		if err := r.validate(); err != nil {
			return err
		}
		if dir := "packs/" + e.Name + "/"; !strings.HasPrefix(r.To, dir) {
			return fmt.Errorf("%q is not in %s", r.To, dir)
		}
	}
	for _, c := range e.Copies {
		if path.Dir(c.From) != "packs/default" {
			return fmt.Errorf("%q is not of the default pack", c.From)
		}
	}
	return nil
}

// results returns the files that setup makes from others. A nil pack has none.
func (e *extraPack) results() []result {
	if e == nil {
		return nil
	}
	out := []result{e.Model}
	for _, c := range e.Copies {
		out = append(out, c.result)
	}
	return out
}

// texts returns the pack's manifest. A nil pack has none.
func (e *extraPack) texts() []text {
	if e == nil {
		return nil
	}
	manifest, _ := models.Builtin(e.Name) // validate has seen it
	return []text{{"packs/" + e.Name + "/" + models.ManifestName, manifest}}
}

// add makes the set-up install the pack with this name. An empty name adds none.
func (s *setup) add(l *lock, name string) error {
	if name == "" || name == "default" {
		return nil
	}
	for i := range l.Packs {
		e := &l.Packs[i]
		if e.Name != name {
			continue
		}
		s.extra = e
		for j := range e.Packages {
			s.packages = append(s.packages, &e.Packages[j])
		}
		return nil
	}
	return fmt.Errorf("there is no pack %q in assets/lock.json", name)
}

// open opens the default pack. If the user asked for an extra pack, it returns
// that pack instead.
func (s *setup) open() (*models.Pack, error) {
	p, err := models.Open(filepath.Join(s.assets, "packs", "default"))
	if err != nil || s.extra == nil {
		return p, err
	}
	return models.Open(filepath.Join(s.assets, "packs", s.extra.Name))
}

// makeExtra makes the extra pack's files.
func (s *setup) makeExtra(tmp string) error {
	began := time.Now()
	read := func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(s.assets, filepath.FromSlash(name)))
	}
	index, err := read(s.extra.Index)
	if err != nil {
		return err
	}
	weights, err := read(s.extra.Weights)
	if err != nil {
		return err
	}
	model, err := convert.Dlib(index, weights)
	if err != nil {
		return err
	}
	if err := place(s.assets, tmp, s.extra.Model, bytes.NewReader(model)); err != nil {
		return err
	}
	for _, c := range s.extra.Copies {
		data, err := read(c.From)
		if err != nil {
			return err
		}
		if err := place(s.assets, tmp, c.result, bytes.NewReader(data)); err != nil {
			return err
		}
	}
	s.say("  made     %-38s %9s of %s, %.1f s\n", path.Base(s.extra.Model.To),
		megabytes(s.extra.Model.Size), path.Base(s.extra.Weights), time.Since(began).Seconds())
	return nil
}
