package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"facet/engine"
	"facet/engine/models"
	"facet/internal/pinned"
)

// Source contains the paths of the face engine's parts.
type Source struct {
	// Pack is the folder of a model pack, or a folder of packs. Identity chooses one of them
	// (Choose).
	Pack, Identity string
	// ONNXRuntime is the path of its shared library, and SHA256 its hash. Without a hash it
	// has to be the library that set-up installs.
	ONNXRuntime, SHA256 string
	// Workers is the number of images worked on at once, 0 for one on each core.
	Workers int
}

// Open opens the face engine. Its errors are sentences for the person who named the
// source.
func (s Source) Open() (*engine.Engine, error) { return s.open(func(*models.Manifest) {}) }

// open opens the face engine with a change of the pack's manifest.
func (s Source) open(change func(m *models.Manifest)) (*engine.Engine, error) {
	dir, err := Choose(s.Pack, s.Identity)
	if err != nil {
		return nil, err
	}
	pack, err := models.OpenToLoad(dir)
	if err != nil {
		return nil, packError(dir, err)
	}
	change(pack.Manifest)
	return s.start(dir, pack)
}

// Read reads the pack's manifest. Its errors are those of Open.
func (s Source) Read() (*models.Pack, error) {
	dir, err := Choose(s.Pack, s.Identity)
	if err != nil {
		return nil, err
	}
	return Read(dir)
}

// openToFit opens the face engine with a change of the pack's manifest. The templates of a pack with two
// embedders have the values of both (models.OpenWhole).
func (s Source) openToFit(change func(m *models.Manifest)) (*engine.Engine, error) {
	pack, err := s.Read()
	if err != nil {
		return nil, err
	}
	if pack.Manifest.Joined == nil {
		return s.open(change)
	}
	whole, err := models.OpenWhole(pack.Dir())
	if err != nil {
		return nil, packError(pack.Dir(), err)
	}
	change(whole.Manifest)
	return s.start(pack.Dir(), whole)
}

// start starts an engine with the pack of dir.
func (s Source) start(dir string, pack *models.Pack) (*engine.Engine, error) {
	if _, err := os.Stat(s.ONNXRuntime); err != nil {
		return nil, fmt.Errorf("ONNX Runtime is not at %s: run \"make setup\", or name its library with --onnxruntime", s.ONNXRuntime)
	}
	e, err := engine.New(pack, engine.Config{Library: s.ONNXRuntime, LibrarySHA256: s.SHA256, Workers: s.Workers})
	if changed, ok := errors.AsType[*pinned.ChangedError](err); ok {
		return nil, fmt.Errorf("%w: run \"make setup\" to install it again, or allow another ONNX Runtime by its hash with --onnxruntime-sha256", changed)
	}
	if errors.Is(err, models.ErrPack) {
		return nil, packError(dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("start the face engine: %w", err)
	}
	return e, nil
}

// Read reads the manifest of the pack in dir. Its errors are sentences for the
// person who named the folder.
func Read(dir string) (*models.Pack, error) {
	pack, err := models.Read(dir)
	if err != nil {
		return nil, packError(dir, err)
	}
	return pack, nil
}

// packError turns an error of opening a pack into a sentence.
func packError(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no model pack in %s: run \"make setup\", or name a pack's folder with --models", dir)
	case errors.Is(err, models.ErrPack), errors.Is(err, models.ErrManifest):
		return fmt.Errorf("the model pack in %s can't be used, \"make setup\" installs it again: %w", dir, err)
	}
	return err
}
