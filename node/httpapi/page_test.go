package httpapi_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"facet/engine/imaging"
	"facet/internal/must"
)

// The page names the limits that the decoders keep.
func TestPageNamesLimitsOfImages(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/interface.md")
	must.Do(t, err)
	thousands := fmt.Sprintf("%d,%03d", imaging.MaxSide/1000, imaging.MaxSide%1000)
	for _, limit := range []string{
		fmt.Sprintf("%d to %s pixels a side", imaging.MinSide, thousands), fmt.Sprintf("%d million in all", imaging.MaxPixels/1_000_000),
		"JPEG, PNG, GIF, BMP, WebP, TIFF or HEIC", "20 MiB with the base64 text", "signed twice in one second it is the same request",
	} {
		if !strings.Contains(strings.ReplaceAll(string(page), "\n  ", " "), limit) {
			t.Errorf("docs/interface.md does not say %q", limit)
		}
	}
}
