package main

import (
	"os"
	"testing"

	"facet/internal/must"
)

// What follows from the settings is committed.
func TestFilesFollowFromSettings(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../..")
	made, err := generated(root)
	must.Do(t, err)
	for name, want := range made {
		if got, err := os.ReadFile("../../" + name); err != nil || string(got) != want {
			t.Errorf("%s is out of date: run make describe; %v", name, err)
		}
	}
}
