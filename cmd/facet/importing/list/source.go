package list

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// RowsMax is the most rows of an import. An import keeps some ten bytes of each in memory.
const RowsMax = 5_000_000

var errRows = fmt.Errorf("there are more than %d rows: split the list", RowsMax)

// The suffixes of lists.
var (
	csvSuffixes  = []string{".csv", ".tsv", ".txt"}
	jsonSuffixes = []string{".jsonl", ".ndjson", ".json"}
)

func listSuffixes() []string { return append(append([]string{}, csvSuffixes...), jsonSuffixes...) }

func hasSuffix(name string, suffixes []string) bool {
	for _, suffix := range suffixes {
		if strings.EqualFold(filepath.Ext(name), suffix) {
			return true
		}
	}
	return false
}

// Options say how arguments are read.
type Options struct {
	// PerPerson takes each folder of a folder for a person. Its name is the external id.
	PerPerson bool
	// Outside allows a list to name files outside its own folder.
	Outside bool
}

// Source is what an import brings in. It is for one goroutine at a time.
type Source struct {
	options Options
	list    string   // file of a list, or empty
	folder  *os.Root // of the list; nil: its files may be anywhere
	parts   []part   // folders and files of photos
	ignored []string // columns that are not read
}

// part is a folder of photos, or one photo.
type part struct {
	root *os.Root // nil: file is a photo
	file string
}

// Open opens what arguments name: one list, or folders and photos. The caller must close
// the source.
func Open(args []string, o Options) (*Source, error) {
	s := &Source{options: o}
	lists := 0
	for _, arg := range args {
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() && hasSuffix(arg, listSuffixes()) {
			lists++
		}
	}
	var err error
	switch {
	case lists > 0 && (len(args) > 1 || o.PerPerson):
		err = errors.New("give one list alone, or folders and photos")
	case lists > 0:
		s.list = args[0]
		if !o.Outside {
			s.folder, err = os.OpenRoot(filepath.Dir(s.list))
		}
	default:
		err = s.openPhotos(args)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the folders.
func (s *Source) Close() error {
	var errs []error
	if s.folder != nil {
		errs = append(errs, s.folder.Close())
	}
	for _, p := range s.parts {
		if p.root != nil {
			errs = append(errs, p.root.Close())
		}
	}
	return errors.Join(errs...)
}

// Ignored returns the columns that the last iteration did not read.
func (s *Source) Ignored() []string { return s.ignored }

// Rows iterates over the rows. An error ends it.
func (s *Source) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		n, stopped := 0, false
		each := func(r Row) bool {
			if n++; n > RowsMax {
				stopped = true
				yield(Row{}, errRows)
				return false
			}
			if r.Number == 0 {
				r.Number = n
			}
			r.compose()
			stopped = !yield(r, nil)
			return !stopped
		}
		err := s.each(each)
		if err != nil && !stopped {
			yield(Row{}, err)
		}
	}
}

// each calls yield for each row until it returns false.
func (s *Source) each(yield func(Row) bool) error {
	if s.list != "" {
		return s.listed(yield)
	}
	more := true
	next := func(r Row) bool { more = yield(r); return more }
	for _, p := range s.parts {
		if !more {
			return nil
		}
		if p.root == nil {
			next(Row{File: p.file, path: p.file})
			continue
		}
		if err := s.photosIn(p, next); err != nil {
			return err
		}
	}
	return nil
}

// listed yields the rows of the list.
func (s *Source) listed(yield func(Row) bool) error {
	f, err := os.Open(s.list)
	if err != nil {
		return err // the error names the file
	}
	defer f.Close()
	return s.read(f, hasSuffix(s.list, jsonSuffixes), yield)
}

// read yields the rows of an opened list.
func (s *Source) read(f io.Reader, isJSON bool, yield func(Row) bool) error {
	l := newLines(f)
	ignored := map[string]bool{}
	parse := func(line []byte) (Row, bool) { return readObject(line, ignored) }
	if !isJSON {
		c, err := readColumns(l)
		if err != nil {
			return fmt.Errorf("%s: %w", s.list, err)
		}
		s.ignored, parse = c.ignored(), c.row
	}
	for {
		line, bad, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.list, err)
		}
		row := Row{Err: bad}
		if bad == nil {
			var blank bool
			if row, blank = parse(line); blank {
				continue
			}
		}
		row.Number, row.within, row.path = l.number, s.folder, filepath.FromSlash(row.File)
		if s.folder == nil && !filepath.IsAbs(row.path) {
			row.path = filepath.Join(filepath.Dir(s.list), row.path)
		}
		if !yield(row) {
			break
		}
	}
	if isJSON {
		s.ignored = names(ignored)
	}
	return nil
}
