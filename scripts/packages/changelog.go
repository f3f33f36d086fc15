package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	changelogFile = "CHANGELOG.md"
	// unreleased stands in a heading instead of the date of the release.
	unreleased = "unreleased"
	dateForm   = "2 January 2006"
)

// release is one chapter of the changelog.
type release struct {
	// Version is the number of the heading. A release that has no date yet has "-dev" behind it, so
	// that it is older than the release itself.
	Version string
	Date    time.Time // zero without a date
	Notes   []string  // one for each change, without Markdown's marks of lists
}

var (
	headingForm = regexp.MustCompile(`^## (\d+\.\d+\.\d+), (.+)$`)
	linkForm    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// readChangelog returns the releases of CHANGELOG.md, the newest first. Its first heading is the
// only place where the version is written by hand.
func readChangelog(root string) ([]release, error) {
	raw, err := os.ReadFile(filepath.Join(root, changelogFile))
	if err != nil {
		return nil, fmt.Errorf("read the version: %w", err)
	}
	return parseChangelog(string(raw))
}

func parseChangelog(text string) ([]release, error) {
	var list []release
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "## ") {
			r, err := parseHeading(line)
			if err != nil {
				return nil, err
			}
			list = append(list, r)
			continue
		}
		if len(list) == 0 {
			continue // the introduction
		}
		r := &list[len(list)-1]
		switch note, isNote := strings.CutPrefix(line, "- "); {
		case isNote:
			r.Notes = append(r.Notes, plain(note))
		case strings.HasPrefix(line, "  ") && len(r.Notes) > 0:
			r.Notes[len(r.Notes)-1] += " " + plain(strings.TrimPrefix(strings.TrimSpace(line), "- "))
		}
	}
	if len(list) == 0 {
		return nil, errors.New(changelogFile + " has no heading \"## VERSION, DATE\"")
	}
	return list, nil
}

func parseHeading(line string) (r release, err error) {
	m := headingForm.FindStringSubmatch(line)
	if m == nil {
		return r, fmt.Errorf("%s: %q is not \"## VERSION, DATE\" or \"## VERSION, %s\"", changelogFile, line, unreleased)
	}
	if m[2] == unreleased {
		return release{Version: m[1] + "-dev"}, nil
	}
	r.Version = m[1]
	if r.Date, err = time.Parse(dateForm, m[2]); err != nil {
		return r, fmt.Errorf("%s: the date of %s: %w", changelogFile, m[1], err)
	}
	return r, nil
}

// plain takes links and code marks out of a note.
func plain(note string) string {
	return strings.ReplaceAll(linkForm.ReplaceAllString(note, "$1"), "`", "")
}
