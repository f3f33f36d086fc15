package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
	"facet/node/wire"
)

var rootDir = filepath.Join("..", "..")

func TestChangelogNamesVersionAndNotes(t *testing.T) {
	t.Parallel()
	got, err := parseChangelog("# Changelog\n\nAll changes.\n\n## 0.4.0, unreleased\n\n- A [page](docs/x.md) of\n  `facet`.\n- Other:\n  - more.\n\n" +
		"## 0.3.1, 23 November 2026\n\n- Fixed.\n")
	want := []release{
		{Version: "0.4.0-dev", Notes: []string{"A page of facet.", "Other: more."}},
		{Version: "0.3.1", Date: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), Notes: []string{"Fixed."}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, bad := range []string{"", "## Unreleased\n", "## 0.4, unreleased\n", "## 0.4.0, soon\n"} {
		if _, err := parseChangelog(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// The binary, the chart and whatever else repeats the version states that of CHANGELOG.md.
func TestEverythingStatesChangelogsVersion(t *testing.T) {
	t.Parallel()
	version, err := checkVersions(rootDir, false)
	must.Do(t, err)
	if wire.Version != version {
		t.Errorf("the binary has version %s, want %s", wire.Version, version)
	}
}

func TestNewVersionReachesAllFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, v := range versionedFiles {
		raw, err := os.ReadFile(filepath.Join(rootDir, v.file))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(root, v.file)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, v.file), raw, 0o644)
		}
		must.Do(t, err)
	}
	must.Do(t, os.WriteFile(filepath.Join(root, changelogFile), []byte("## 12.3.4, 1 May 2027\n"), 0o644))
	if _, err := checkVersions(root, false); err == nil || !strings.Contains(err.Error(), "make version") {
		t.Errorf("files of another version: error is %v", err)
	}
	for _, write := range []bool{true, false} {
		if got, err := checkVersions(root, write); err != nil || got != "12.3.4" {
			t.Errorf("got %s, %v", got, err)
		}
	}
}
