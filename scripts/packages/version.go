package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// versioned is a file that repeats the version, in the first group of form. The files need it as
// text: Go's tests would run anew after each line of the changelog if the program read that instead.
type versioned struct {
	file string
	form *regexp.Regexp
}

var versionedFiles = []versioned{
	{"node/wire/version.go", regexp.MustCompile(`(?m)^const Version = "(.*)"$`)},
	{chartFolder + "/Chart.yaml", regexp.MustCompile(`(?m)^(?:version|appVersion): (.*)$`)},
}

// setVersion makes the file state the version, and reports whether it did already.
func (v versioned) setVersion(root, version string, write bool) (stated bool, err error) {
	name := filepath.Join(root, v.file)
	raw, err := os.ReadFile(name)
	if err != nil {
		return false, err
	}
	at := v.form.FindAllSubmatchIndex(raw, -1)
	if len(at) == 0 {
		return false, fmt.Errorf("%s states no version as %s", v.file, v.form)
	}
	stated = true
	for _, place := range slices.Backward(at) {
		from, to := place[2], place[3]
		stated = stated && string(raw[from:to]) == version
		raw = append(raw[:from:from], append([]byte(version), raw[to:]...)...)
	}
	if stated || !write {
		return stated, nil
	}
	return true, os.WriteFile(name, raw, 0o644)
}

// checkVersions makes all files state the version of the changelog, or returns an error for the
// first that does not.
func checkVersions(root string, write bool) (string, error) {
	releases, err := readChangelog(root)
	if err != nil {
		return "", err
	}
	version := releases[0].Version
	for _, v := range versionedFiles {
		stated, err := v.setVersion(root, version, write)
		if err != nil {
			return "", err
		}
		if !stated {
			return "", fmt.Errorf("%s does not state version %s of %s: run \"make version\"", v.file, version, changelogFile)
		}
	}
	return version, nil
}
