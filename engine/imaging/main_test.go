package imaging_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"facet/engine/imaging"
)

// TestMain loads libjpeg-turbo as set-up brings it, or as the system has it. The
// tests run without it, too: those of JPEG show the standard library then.
func TestMain(m *testing.M) {
	if os.Getenv(warmVariable) != "" {
		warmAndWait()
	}
	if err := imaging.LoadTurbo(filepath.Join("..", "..", "assets", "lib"), imaging.Installed); err != nil {
		fmt.Fprintln(os.Stderr, "JPEG by the standard library:", err)
	}
	os.Exit(m.Run())
}
