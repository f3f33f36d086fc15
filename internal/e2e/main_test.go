package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/image/draw"

	"facet/cmd/facet/process"
	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/internal/must"
)

var (
	root    string   // folder of the repository
	sources []string // files and folders of what the program is made of, and scripts that tests run
	// starter starts every process of these tests, so that they die with it.
	starter *process.Starter
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil { // tests mostly wait
		panic(err)
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
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	common.dir = dir
	if err := build(); err != nil {
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

// build builds the program, so that no test runs an old one, and lists its sources. It takes a second if nothing
// has changed.
func build() error {
	if _, err := tool("make", "facet-test"); err != nil {
		return err
	}
	list, err := tool("go", "list", "-deps", "-tags", "hashicorpmetrics,stale", "-json=Dir,Standard,GoFiles,CgoFiles,CFiles,HFiles,SFiles,EmbedFiles", "./cmd/facet")
	if err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.work", "internal/e2e/testdata/botocore_client.py"} {
		sources = append(sources, filepath.Join(root, name))
	}
	for d := json.NewDecoder(bytes.NewReader(list)); d.More(); {
		var p struct {
			Dir                                                   string
			Standard                                              bool
			GoFiles, CgoFiles, CFiles, HFiles, SFiles, EmbedFiles []string
		}
		if err := d.Decode(&p); err != nil {
			return err
		}
		if p.Standard || !strings.HasPrefix(p.Dir, root) {
			continue
		}
		sources = append(sources, p.Dir)
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.CFiles, p.HFiles, p.SFiles, p.EmbedFiles) {
			sources = append(sources, filepath.Join(p.Dir, name))
		}
	}
	return nil
}

// tool runs a program in the repository and returns its standard output.
func tool(name string, args ...string) ([]byte, error) {
	var errs bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = root, &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, args[0], err, &errs)
	}
	return out, err
}

// inputs makes the sources inputs of Go's test cache: a test that has asked for their state runs again when one
// has changed.
var inputs = sync.OnceFunc(func() {
	for _, name := range sources {
		_, _ = os.Stat(name) // asking is all
	}
})

// program returns the path of the facet under test.
func program() string {
	inputs()
	return filepath.Join(root, "bin", "facet-test")
}

// common is the cluster that tests share, each with a gallery of its own. It has eight shards, so that work on
// all of them takes some time.
var common struct {
	mu      sync.Mutex
	dir     string
	made    int // clusters
	cluster *cluster
}

func shared(t *testing.T) *cluster {
	t.Helper()
	common.mu.Lock()
	defer common.mu.Unlock()
	if common.cluster == nil {
		common.made++
		common.cluster = startDev(t, filepath.Join(common.dir, "dev"+strconv.Itoa(common.made)), "--nodes", "3", "--shards", "8")
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

// original returns the path of a sample photo, or of their folder.
func original(name string) string { return filepath.Join(root, "assets", "photos", name) }

// portraits are the photos that photoPath shrinks.
var portraits = []string{obama, anotherObama, biden}

// shrink makes the small portraits in a folder, which it returns.
var shrink = sync.OnceValue(func() (dir string) {
	dir = filepath.Join(common.dir, "photos")
	for _, name := range portraits {
		var b bytes.Buffer
		im, err := shrunk(name)
		if err == nil {
			err = jpeg.Encode(&b, im, nil)
		}
		file := filepath.Join(dir, name)
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
			panic(err)
		}
	}
	return dir
})

// photoPath returns the path of a photo. A portrait has a fifth of its size, and takes a third of the time.
func photoPath(name string) string {
	if slices.Contains(portraits, name) {
		return filepath.Join(shrink(), name)
	}
	return original(name)
}

func photo(t *testing.T, name string) []byte {
	t.Helper()
	return read(t, photoPath(name))
}

// shrunk returns a JPEG photo in a fifth of its size.
func shrunk(name string) (*image.RGBA, error) {
	file, err := os.ReadFile(original(name))
	if err != nil {
		return nil, err
	}
	im, err := jpeg.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	out := image.NewRGBA(image.Rect(0, 0, im.Bounds().Dx()/5, im.Bounds().Dy()/5))
	draw.CatmullRom.Scale(out, out.Rect, im, im.Bounds(), draw.Src, nil)
	return out, nil
}

// encoded returns a photo in base64.
func encoded(t *testing.T, name string) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(photo(t, name))
}

var reference struct {
	mu     sync.Mutex
	engine *engine.Engine
}

// extractor returns an engine in this process with the models of the clusters. It is never closed.
func extractor(t *testing.T) *engine.Engine {
	t.Helper()
	reference.mu.Lock()
	defer reference.mu.Unlock()
	if reference.engine == nil {
		pack, err := models.Open(filepath.Join(root, "assets", "packs", models.FoundingPack))
		if err == nil {
			reference.engine, err = engine.New(pack, engine.Config{Library: enginetest.Library(t), Workers: 1})
		}
		must.Do(t, err)
	}
	return reference.engine
}
