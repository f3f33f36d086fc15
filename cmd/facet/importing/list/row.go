package list

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
)

// Bounds on one row.
const (
	// PhotoBytesMax is the most bytes of a photo. The service takes a body of 20 MiB,
	// with the photo in base64.
	PhotoBytesMax = 15_000_000
	tagsMax       = 64 // as many as a gallery has
	tagSeparator  = ";"
)

// Row is one photo to bring in.
type Row struct {
	// Number counts rows from 1. In a list it is the number of the line.
	Number int
	// ExternalID is the person's id in another system, or empty.
	ExternalID string
	// File is the photo's name, as the list or the folder has it.
	File string
	Tags []string
	// UserData is a JSON object that is kept with the subject, or nil.
	UserData jsontext.Value
	// Expires is when the event expires, or the zero time for never.
	Expires time.Time
	// Err is why the row can't be used, in words, or nil.
	Err error

	within *os.Root // where path lies; nil: anywhere
	path   string
}

// CopyTo writes the photo to w. It takes at most PhotoBytesMax bytes.
func (r *Row) CopyTo(w io.Writer) error {
	f, err := r.open()
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(w, io.LimitReader(f, PhotoBytesMax+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the photo: %w", err)
	case n == 0:
		return errors.New("the photo is empty")
	case n > PhotoBytesMax:
		return fmt.Errorf("the photo has more than %d MB: make it smaller", PhotoBytesMax/1_000_000)
	}
	return nil
}

// open opens the file if it is a regular one. A pipe would wait for ever.
func (r *Row) open() (*os.File, error) {
	stat, open := os.Stat, os.Open
	if r.within != nil {
		stat, open = r.within.Stat, r.within.Open
	}
	info, err := stat(r.path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is no file of a photo")
	}
	if err != nil {
		return nil, r.plain(err)
	}
	f, err := open(r.path)
	if err != nil {
		return nil, r.plain(err)
	}
	return f, nil
}

// plain returns the error of a file in words.
func (r *Row) plain(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(r.File, `\`):
		return errors.New(`there is no such file: write "/" between folders, not "\"`)
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("this user may not read the file")
	case r.within != nil && strings.Contains(err.Error(), "escapes"): // os has no name for this error
		return errors.New("the file is outside the list's folder: --outside allows that")
	}
	return err
}

// setUserData reads a cell with a JSON object.
func (r *Row) setUserData(cell string) {
	if cell = strings.TrimSpace(cell); cell != "" {
		r.UserData = jsontext.Value(cell)
	}
}

// setTags splits a cell with tags.
func (r *Row) setTags(cell string) {
	for tag := range strings.SplitSeq(cell, tagSeparator) {
		if tag = strings.TrimSpace(tag); tag != "" {
			r.Tags = append(r.Tags, tag)
		}
	}
}

// setExpires reads a cell with a time, or with a day, which begins at midnight UTC. How long from
// now is no value: the next run of the same list would have another time.
func (r *Row) setExpires(cell string) error {
	if cell = strings.TrimSpace(cell); cell == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, cell); err == nil {
			r.Expires = at
			return nil
		}
	}
	return errors.New("expires is no time such as 2030-01-31 or 2030-01-31T12:00:00Z")
}

// compose writes names in Unicode's form C, which the service asks for. Folders that come
// from a Mac have names in form D.
func (r *Row) compose() {
	r.ExternalID = norm.NFC.String(r.ExternalID)
	for i, tag := range r.Tags {
		r.Tags[i] = norm.NFC.String(tag)
	}
}

// check sets Err if a row of a list can't be used.
func (r *Row) check() {
	switch {
	case r.Err != nil:
	case r.File == "":
		r.Err = errors.New("the row names no file")
	case len(r.Tags) > tagsMax:
		r.Err = fmt.Errorf("the row has %d tags, the most are %d", len(r.Tags), tagsMax)
	case r.UserData != nil && (r.UserData.Kind() != jsontext.KindBeginObject || !r.UserData.IsValid()):
		r.Err = errors.New(`user_data is no JSON object such as {"department":"sales"}`)
	}
}
