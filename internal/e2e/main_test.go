package e2e

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"facet/cmd/facet/process"
	"facet/engine/models"
)

var (
	program string // the facet under test
	root    string // folder of the repository
	// starter starts every process of these tests, so that they die with it.
	starter *process.Starter
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(extracting) != "" {
		if err := extractOnce(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "-test.list" {
		os.Exit(m.Run())
	}
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	here, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	root = filepath.Dir(filepath.Dir(here))
	if _, err := os.Stat(filepath.Join(root, "assets", "packs", models.FoundingPack, models.ManifestName)); err != nil {
		return 0, fmt.Errorf("the models are missing: run \"make setup\" first (%w)", err)
	}
	dir, err := os.MkdirTemp("", "facet-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "bin", "facet")
	build := exec.Command("go", "build", "-trimpath", "-tags", "hashicorpmetrics,stale", "-o", program, "./cmd/facet")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build facet: %w\n%s", err, out)
	}
	// The binary looks for its models in its own folder.
	if err := os.Symlink(filepath.Join(root, "assets"), filepath.Join(dir, "assets")); err != nil {
		return 0, err
	}
	starter = process.OpenStarter()
	defer starter.Close()
	code := m.Run()
	if common.cluster != nil {
		if err := common.cluster.stop(); err != nil {
			return 1, err
		}
	}
	return code, nil
}

// common is the cluster shared by all tests that do not break it. Each test uses a
// gallery of its own.
var common struct {
	once    sync.Once
	cluster *cluster
}

func shared(t *testing.T) *cluster {
	t.Helper()
	common.once.Do(func() {
		common.cluster = startDev(t, filepath.Join(filepath.Dir(filepath.Dir(program)), "shared"))
	})
	if common.cluster == nil {
		t.Fatal("the shared cluster did not start")
	}
	return common.cluster
}

// The sample photos, by their content.
const (
	obama        = "face_recognition/obama.jpg"
	anotherObama = "face_recognition/obama2.jpg"
	biden        = "face_recognition/biden.jpg"
	collins      = "scikit-image/astronaut.png"
	rocket       = "scikit-image/rocket.jpg"
	threePeople  = "face-api/sample1.jpg"
)

func photoPath(name string) string { return filepath.Join(root, "assets", "photos", name) }

func photo(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(photoPath(name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// encoded returns a photo in base64.
func encoded(t *testing.T, name string) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(photo(t, name))
}
