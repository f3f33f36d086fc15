//go:build slim

package clouds_test

import (
	"strings"
	"testing"

	"facet/node/bucket"
	_ "facet/node/bucket/clouds"
)

func TestSlimBuildNamesTheFullOne(t *testing.T) {
	t.Parallel()
	f := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "make build") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, address := range []string{"gs://photos?secret", "azblob://photos?secret"} {
		_, err := bucket.Open(address)
		f("a store for photos", err)
		_, err = bucket.OpenFolder(t.Context(), address)
		f("a folder for backups", err)
	}
}
