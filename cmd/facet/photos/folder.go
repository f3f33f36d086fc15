package photos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds on a folder of photographs.
const (
	photosMax     = 100_000
	photoBytesMax = 32 << 20
)

var suffixes = []string{".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".heic", ".heif"}

// Photo is one photograph of a folder.
type Photo struct {
	// Person is the index of the person in Folder.Persons.
	Person int
	// File is its path, Name its name without the suffix.
	File, Name string
}

// Folder is a folder with a folder of photographs for each person.
type Folder struct {
	// Persons are the persons' names, sorted. Each person has a photograph.
	Persons []string
	// Photos are in the order of persons, then of their names.
	Photos []Photo
}

// Read returns the photographs in dir, which it recognises by their suffix. Its
// errors are sentences for the person who named the folder.
func Read(ctx context.Context, dir string) (*Folder, error) {
	persons, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no folder %s", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("list photographs: %w", err)
	}
	f := new(Folder)
	for _, p := range persons {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !p.IsDir() || strings.HasPrefix(p.Name(), ".") {
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, p.Name()))
		if err != nil {
			return nil, fmt.Errorf("list photographs: %w", err)
		}
		found := false
		for _, entry := range files {
			name, suffix := entry.Name(), filepath.Ext(entry.Name())
			if entry.IsDir() || strings.HasPrefix(name, ".") || !slices.Contains(suffixes, strings.ToLower(suffix)) {
				continue
			}
			if len(f.Photos) == photosMax {
				return nil, fmt.Errorf("there are more than %d photographs", photosMax)
			}
			found = true
			f.Photos = append(f.Photos, Photo{len(f.Persons), filepath.Join(dir, p.Name(), name), strings.TrimSuffix(name, suffix)})
		}
		if found {
			f.Persons = append(f.Persons, p.Name())
		}
	}
	if len(f.Photos) == 0 {
		return nil, fmt.Errorf("there is no photograph in %s: it must hold a folder of photographs for each person", dir)
	}
	return f, nil
}
