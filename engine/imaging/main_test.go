package imaging_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"facet/engine/imaging"
)

// TestMain loads libjpeg-turbo as set-up brings it, or as the system has it. The tests run without
// it, too: those of JPEG show the standard library then. It compiles the HEIC decoder once for all
// tests, because each HEIC would compile it again.
func TestMain(m *testing.M) {
	if os.Getenv(warmVariable) != "" {
		warmAndWait()
	}
	if err := imaging.LoadTurbo(filepath.Join("..", "..", "assets", "lib"), imaging.Installed); err != nil {
		fmt.Fprintln(os.Stderr, "JPEG by the standard library:", err)
	}
	cool, err := imaging.Warm(context.Background())
	if err != nil {
		panic(err)
	}
	code := m.Run()
	if err := cool(); err != nil {
		panic(err)
	}
	os.Exit(code)
}
