package list

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// suffixes are those of the formats that the service reads.
var suffixes = []string{".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".heic", ".heif"}

func isPhoto(name string) bool {
	return !strings.HasPrefix(path.Base(name), ".") && slices.Contains(suffixes, strings.ToLower(path.Ext(name)))
}

// synology is the folder of thumbnails that a Synology NAS puts beside photos.
const synology = "@eaDir"

// errStop ends a walk when the caller wants no more rows.
var errStop = errors.New("stop")

// walkPhotos yields the photos of a folder and those below it, in the order of their
// names. It follows no links, and skips names that begin with a dot,
// and folders of thumbnails.
func walkPhotos(root *os.Root, each func(file string) bool) error {
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == synology) {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && isPhoto(name) && !each(name) {
			return errStop
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return fmt.Errorf("look for photos: %w", err)
	}
	return nil
}

// photosIn yields a row for each photo of a folder.
func (s *Source) photosIn(p part, yield func(Row) bool) error {
	return walkPhotos(p.root, func(file string) bool {
		row := Row{File: path.Join(p.file, file), within: p.root, path: filepath.FromSlash(file)}
		if !s.options.PerPerson {
			return yield(row)
		}
		person, _, below := strings.Cut(file, "/")
		if row.ExternalID = person; !below {
			row.ExternalID = ""
			row.Err = errors.New("the photo is in no person's folder")
		}
		return yield(row)
	})
}

// openPhotos opens folders and files of photos.
func (s *Source) openPhotos(args []string) error {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return err // the error names the file
		}
		if !info.IsDir() {
			if s.options.PerPerson {
				return fmt.Errorf("%s is no folder: with --per-person an argument is a folder with a folder for each person", arg)
			}
			if !isPhoto(arg) {
				return fmt.Errorf("%s is neither a list (%s) nor a photo (%s)", arg, strings.Join(listSuffixes(), ", "), strings.Join(suffixes, ", "))
			}
			s.parts = append(s.parts, part{file: arg})
			continue
		}
		root, err := os.OpenRoot(arg)
		if err != nil {
			return err
		}
		s.parts = append(s.parts, part{root: root, file: filepath.ToSlash(arg)})
	}
	return nil
}
