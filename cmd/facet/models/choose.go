package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"facet/engine/models"
)

// Choose returns the folder of the pack to use. dir is the folder of a pack, or a folder
// of packs. Of these Choose takes the one whose identity begins with the given text, or
// the pack of new clusters if that is empty. Its errors are sentences for the person
// who named dir.
func Choose(dir, identity string) (string, error) {
	_, err := os.Stat(filepath.Join(dir, models.ManifestName))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if identity == "" {
		return filepath.Join(dir, models.FoundingPack), nil
	}
	list, err := models.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", packError(dir, err)
	}
	if err != nil {
		return "", err
	}
	var others []string
	for _, l := range list {
		if l.Pack == nil {
			continue
		}
		if strings.HasPrefix(l.Pack.ID, identity) {
			return l.Pack.Dir(), nil
		}
		others = append(others, fmt.Sprintf("%s %s", l.Name, l.Pack.ID[:shortID]))
	}
	return "", fmt.Errorf("this cluster's model pack is %.12s, and %s has other ones only (%s): run \"make setup\", or name the pack's folder with --models",
		identity, dir, strings.Join(others, ", "))
}

// Identities returns the identities of the packs in dir, which is a pack or a folder of
// packs. It leaves out what is no pack.
func Identities(dir string) (list []string) {
	if pack, err := models.Read(dir); err == nil {
		return []string{pack.ID}
	}
	packs, err := models.List(dir)
	if err != nil {
		return nil
	}
	for _, l := range packs {
		if l.Pack != nil {
			list = append(list, l.Pack.ID)
		}
	}
	return list
}
