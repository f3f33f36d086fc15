package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	// asked is the external id that Tuesday asks for. It is in the middle of every list.
	asked = 4711
	// peopleMin is the shortest list in which everybody has a row of their own.
	peopleMin = 100
	peopleMax = 5000
)

// member is a row of the list, and what is known of it.
type member struct {
	externalID string
	file       string // relative to the list's folder
	face       face
	bad        string // why the row can't be used: the report's reason begins so
	sample     string // copied as it is, for a bad row
}

// plan returns the rows of a list of so many people. Three of them are bad.
func plan(people int) []member {
	list := make([]member, people)
	for i := range list {
		id := strconv.Itoa(asked - people/2 + i)
		list[i] = member{externalID: id, file: filepath.Join("photos", id+".jpg"), face: crowd[i%len(crowd)]}
	}
	list[people/4].face = doubled
	list[people*3/4].face = doubledAgain
	list[people/3].face = erased
	list[people/5].bad = "there is no such file"
	list[people*2/5].bad, list[people*2/5].sample = "no face", faceless
	list[people*4/5].bad, list[people*4/5].sample = "the image shows several faces", group
	return list
}

// good returns the external ids of the rows that can be used and show one of the faces,
// sorted.
func good(list []member, faces ...face) (ids []string) {
	for _, m := range list {
		if m.bad == "" && slices.Contains(faces, m.face) {
			ids = append(ids, m.externalID)
		}
	}
	slices.Sort(ids)
	return ids
}

// develop makes the photos of the list in dir, and the list.
func (d *darkroom) develop(dir string, list []member) error {
	if err := os.MkdirAll(filepath.Join(dir, "photos"), 0o700); err != nil {
		return err
	}
	var next atomic.Int64
	var workers errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return nil
				}
				if err := d.photo(dir, list[i], i); err != nil {
					return err
				}
			}
		})
	}
	if err := workers.Wait(); err != nil {
		return fmt.Errorf("make the photos: %w", err)
	}
	return write(filepath.Join(dir, "members.csv"), list)
}

// photo makes the photo of one row.
func (d *darkroom) photo(dir string, m member, number int) error {
	name := filepath.Join(dir, m.file)
	switch {
	case m.bad == "":
		return d.picture(m.face, number, name)
	case m.sample == "":
		return nil
	}
	content, err := os.ReadFile(filepath.Join(d.photos, filepath.FromSlash(m.sample)))
	if err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o600)
}

// write writes the list as CSV.
func write(name string, list []member) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	w := csv.NewWriter(file)
	rows := [][]string{{"external_id", "file", "tags"}}
	for _, m := range list {
		rows = append(rows, []string{m.externalID, m.file, "staff"})
	}
	if err := w.WriteAll(rows); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return file.Close()
}
