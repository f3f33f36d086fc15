package enginetest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"facet/engine"
	"facet/engine/models"
)

const (
	photoBytesMax = 16 << 20
	parentsMax    = 20
)

// Photos of one person, of others, of groups and of nobody; see Photo.
var (
	// Obama are photographs of one man, the last two cut so that a part of the
	// face is missing; 32bit.png and obama2.jpg are one photograph.
	Obama = []string{
		"face_recognition/obama.jpg",
		"face_recognition/obama2.jpg",
		"face_recognition/obama3.jpg",
		"face_recognition/32bit.png",
		"face_recognition/obama_partial_face.jpg",
		"face_recognition/obama_partial_face2.jpg",
	}
	// Others are portraits of one other person each.
	Others = []string{
		"face_recognition/biden.jpg",
		"scikit-image/astronaut.png",
	}
	// Groups maps photographs of several people to the number of faces that a person sees.
	Groups = map[string]int{
		"face-api/sample1.jpg": 3,
		"face-api/sample4.jpg": 4,
		"face-api/sample5.jpg": 5,
	}
	// Faceless are pictures of nobody: a cup, a cat, a rocket, galaxies.
	Faceless = []string{
		"scikit-image/coffee.png",
		"scikit-image/chelsea.png",
		"scikit-image/rocket.jpg",
		"scikit-image/hubble_deep_field.jpg",
	}
)

// Assets returns the folder that `make setup` fills, found from the test's
// working directory upwards.
func Assets(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for range parentsMax {
		if _, err := os.Stat(filepath.Join(dir, "assets", "lock.json")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	assets := filepath.Join(dir, "assets")
	if _, err := os.Stat(PackDir(assets)); err != nil {
		tb.Fatal("the models are missing: run make setup in the repository's root first")
	}
	return assets
}

// PackDir returns the default pack's folder in the assets.
func PackDir(assets string) string { return filepath.Join(assets, "packs", "default") }

// Library returns the path of ONNX Runtime's shared library in the assets.
func Library(tb testing.TB) string {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join(Assets(tb), "lib", "*onnxruntime.*"))
	if err != nil || len(found) == 0 {
		tb.Fatal("ONNX Runtime is missing: run make setup in the repository's root first")
	}
	return found[0]
}

// Pack opens the default pack.
func Pack(tb testing.TB) *models.Pack {
	tb.Helper()
	pack, err := models.Open(PackDir(Assets(tb)))
	if err != nil {
		tb.Fatalf("%v: run make setup in the repository's root", err)
	}
	return pack
}

// All returns an engine for each installed pack, by the pack's name.
func All(tb testing.TB) map[string]*engine.Engine {
	tb.Helper()
	engines := make(map[string]*engine.Engine)
	for _, name := range models.Names() {
		engines[name] = At(tb, filepath.Join(Assets(tb), "packs", name))
	}
	return engines
}

// At returns an engine with the pack of a folder, closed when the test ends, or the shared one
// for no folder.
func At(tb testing.TB, dir string) *engine.Engine {
	tb.Helper()
	if dir == "" {
		return Shared(tb)
	}
	pack, err := models.Open(dir)
	if err != nil {
		tb.Fatalf("%v: run make setup in the repository's root first", err)
	}
	return of(tb, pack, engine.Config{})
}

// Of returns an engine of a pack with one worker, closed when the test ends.
func Of(tb testing.TB, pack *models.Pack) *engine.Engine {
	tb.Helper()
	return of(tb, pack, engine.Config{Workers: 1})
}

func of(tb testing.TB, pack *models.Pack, cfg engine.Config) *engine.Engine {
	tb.Helper()
	cfg.Library = Library(tb)
	e, err := engine.New(pack, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(e.Close)
	return e
}

// New returns an engine of the test's own, closed when the test ends.
func New(tb testing.TB, cfg engine.Config) *engine.Engine {
	tb.Helper()
	return of(tb, Pack(tb), cfg)
}

var shared struct {
	sync.Mutex
	engine *engine.Engine
}

// Shared returns the one engine that all tests of a process share, with one
// worker for each core. It is never closed.
func Shared(tb testing.TB) *engine.Engine {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.engine == nil {
		e, err := engine.New(Pack(tb), engine.Config{Library: Library(tb)})
		if err != nil {
			tb.Fatal(err)
		}
		shared.engine = e
	}
	return shared.engine
}

// Photo returns the bytes of a photograph, named like those in Obama.
func Photo(tb testing.TB, name string) []byte {
	tb.Helper()
	path := filepath.Join(Assets(tb), "photos", filepath.FromSlash(name))
	info, err := os.Stat(path)
	if err != nil {
		tb.Fatalf("the photo %s is missing: run make setup in the repository's root first", name)
	}
	if info.Size() > photoBytesMax {
		tb.Fatalf("the photo %s has %d bytes", name, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
