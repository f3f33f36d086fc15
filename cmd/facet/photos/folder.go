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

	"facet/engine/accuracy"
)

// Bounds on a folder of photographs.
const (
	photosMax     = accuracy.SamplesMax
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

// Resolve returns the indices of the pairs' photographs, NAME/NAME_0001.jpg for
// number 1.
func (f *Folder) Resolve(pairs []accuracy.Pair) ([][2]int, error) {
	type key struct{ person, name string }
	places := make(map[key]int, len(f.Photos))
	for i, p := range f.Photos {
		places[key{f.Persons[p.Person], p.Name}] = i
	}
	out := make([][2]int, len(pairs))
	for i, p := range pairs {
		for j, of := range []accuracy.Photo{p.A, p.B} {
			place, ok := places[key{of.Person, fmt.Sprintf("%s_%04d", of.Person, of.Number)}]
			if !ok {
				return nil, fmt.Errorf("the list of pairs names photograph %d of %q, which is not in the folder", of.Number, of.Person)
			}
			out[i][j] = place
		}
	}
	return out, nil
}

// Keep removes all photographs except those at the indices, and adjusts the
// indices.
func (f *Folder) Keep(pairs [][2]int) {
	wanted := make([]bool, len(f.Photos))
	for _, p := range pairs {
		wanted[p[0]], wanted[p[1]] = true, true
	}
	place := make([]int, len(f.Photos))
	left := new(Folder)
	last := -1
	for i, p := range f.Photos {
		if !wanted[i] {
			continue
		}
		if p.Person != last {
			last = p.Person
			left.Persons = append(left.Persons, f.Persons[p.Person])
		}
		place[i] = len(left.Photos)
		p.Person = len(left.Persons) - 1
		left.Photos = append(left.Photos, p)
	}
	*f = *left
	for i := range pairs {
		pairs[i] = [2]int{place[pairs[i][0]], place[pairs[i][1]]}
	}
}
