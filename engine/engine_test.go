package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"math"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/engine/models"
	"facet/engine/score"
	"facet/internal/must"
)

// Tests of one process run on few engines, because to open one takes as long as a few photos. A test
// that counts an engine's work or looks into its memory isn't parallel, so it has the engine alone.
var openEngines struct {
	sync.Mutex
	by map[string]*engine.Engine
}

// kept returns the engine of a pack with one worker that all tests share under a name.
func kept(t *testing.T, name string, pack func() *models.Pack) *engine.Engine {
	t.Helper()
	openEngines.Lock()
	defer openEngines.Unlock()
	e := openEngines.by[name]
	if e == nil {
		var err error
		if e, err = engine.New(pack(), engine.Config{Library: enginetest.Library(t), Workers: 1}); err != nil {
			t.Fatal(err)
		}
		if openEngines.by == nil {
			openEngines.by = map[string]*engine.Engine{}
		}
		openEngines.by[name] = e
	}
	return e
}

// single returns an engine of the default pack with one worker.
func single(t *testing.T) *engine.Engine {
	t.Helper()
	return kept(t, "single", func() *models.Pack { return enginetest.Pack(t) })
}

// sameBits compares templates, or whole faces, bit for bit.
func sameBits[T engine.Template | engine.Face | []engine.Face](a, b T) bool {
	return reflect.DeepEqual(a, b)
}

func TestExtractIsDeterministic(t *testing.T) {
	t.Parallel()
	data, other := asPNG(t, portrait(t)), asJPEG(t, halved(enginetest.RGBA(t, enginetest.Behind(t))))
	want := extract(t, data)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			extract(t, other) // it must leave no trace
			if got := extract(t, data); !sameBits(got, want) {
				t.Error("a run differs from the first")
			}
		})
	}
	wg.Wait()
	got, err := single(t).Extract(t.Context(), data)
	if err != nil || !sameBits(got, want) {
		t.Errorf("another engine finds %+v, want %+v: %v", got, want, err)
	}
}

// withOrientation puts an EXIF block with the orientation into a JPEG.
func withOrientation(data []byte, orientation uint16) []byte {
	block := []byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01")
	block = binary.BigEndian.AppendUint16(block, orientation)
	block = append(block, 0, 0, 0, 0, 0, 0)
	return append(append(append([]byte(nil), data[:2]...), block...), data[2:]...)
}

// TestShrunkMapMatchesBoxFilter of package imaging shows each orientation at each scale.
func TestOrientationKeepsTemplate(t *testing.T) {
	t.Parallel()
	im := portrait(t)
	want := extract(t, asJPEG(t, im))[0]
	faces := extract(t, withOrientation(asJPEG(t, turnedFrame(im, -90)), 6))
	if len(faces) != 1 {
		t.Fatalf("got %d faces, want 1", len(faces))
	}
	if cos := score.Dot(want.Template, faces[0].Template); cos < .99 {
		t.Errorf("cosine %.4f, want .99 or more", cos)
	}
	a, b := want.Attributes, faces[0].Attributes
	if math.Abs(float64(a.RightEye.X-b.RightEye.X)) > 3 || math.Abs(float64(a.RightEye.Y-b.RightEye.Y)) > 3 {
		t.Errorf("right eye at %v, want %v", b.RightEye, a.RightEye)
	}
}

// hugePNG announces 30,000 × 30,000 pixels in 100 KB.
func hugePNG() []byte {
	body := []byte("IHDR\x00\x00\x75\x30\x00\x00\x75\x30\x08\x02\x00\x00\x00")
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), body...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
	return append(out, make([]byte, 100<<10)...)
}

func TestNonImageReturnsErrImage(t *testing.T) {
	t.Parallel()
	e := enginetest.Shared(t)
	photo := enginetest.Photo(t, "face_recognition/obama.jpg")
	f := func(name string, data []byte) {
		t.Helper()
		faces, err := e.Extract(context.Background(), data)
		if !errors.Is(err, engine.ErrImage) || faces != nil {
			t.Errorf("%s: got %d faces and %v, want ErrImage", name, len(faces), err)
		}
	}
	f("empty", nil)
	f("text", []byte("no image"))
	f("huge", hugePNG())
	f("half", photo[:len(photo)/2])
	f("tiny", asPNG(t, image.NewGray(image.Rect(0, 0, 15, 15))))
	f("a PNG with half its bytes", enginetest.Photo(t, "scikit-image/astronaut.png")[:100_000])
}

func TestExtractLargeIsSubsetOfExtract(t *testing.T) {
	t.Parallel()
	e := enginetest.Shared(t)
	data := enginetest.Behind(t)
	all := extract(t, data)
	if len(all) != 2 {
		t.Fatalf("got %d faces, want 2", len(all))
	}
	side := func(i int) float32 { return all[i].Attributes.Face.Right - all[i].Attributes.Face.Left }
	ratio := side(1) / side(0)
	for _, c := range []struct {
		share float32
		want  int
	}{{0, 2}, {ratio - .05, 2}, {ratio + .05, 1}, {1, 1}} {
		faces, err := e.ExtractLarge(context.Background(), data, c.share)
		must.Do(t, err)
		if len(faces) != c.want {
			t.Errorf("share %.2f: got %d faces, want %d", c.share, len(faces), c.want)
			continue
		}
		if !sameBits(faces[0].Template, all[0].Template) {
			t.Errorf("share %.2f: the largest face differs from Extract's", c.share)
		}
	}
	if _, err := e.ExtractLarge(context.Background(), data, 1.5); err == nil {
		t.Error("a share above 1 was taken")
	}
}

func TestFullQueueReturnsErrBusy(t *testing.T) {
	t.Parallel()
	const queue, requests = 2, 20
	e := enginetest.New(t, engine.Config{Workers: 1, Queue: queue})
	data := asPNG(t, portrait(t))
	release := e.Occupy()
	answers := make(chan error, requests)
	for range requests {
		go func() {
			_, err := e.Extract(t.Context(), data)
			answers <- err
		}()
	}
	for range requests - queue {
		if err := <-answers; !errors.Is(err, engine.ErrBusy) {
			t.Errorf("got %v, want ErrBusy", err)
		}
	}
	release()
	for range queue {
		if err := <-answers; err != nil {
			t.Errorf("in the queue: got %v", err)
		}
	}
}

func TestContextEndsWaitAndWork(t *testing.T) {
	e := single(t)
	data := enginetest.Photo(t, "face-api/sample1.jpg")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Extract(ended, data); !errors.Is(err, context.Canceled) {
		t.Errorf("ended before: got %v", err)
	}
	// The deadline is between two stages, long before the last one, or comes while the only worker
	// has other work.
	soon := func(what string) {
		t.Helper()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := e.Extract(short, data); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	soon("at work")
	release := e.Occupy()
	defer release()
	soon("waiting")
}

func TestClosedEngineFinishesWork(t *testing.T) {
	t.Parallel()
	e := enginetest.New(t, engine.Config{Workers: 2})
	data := asPNG(t, portrait(t))
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, err := e.Extract(context.Background(), data); err != nil && !errors.Is(err, engine.ErrClosed) {
				t.Error(err)
			}
		})
	}
	runtime.Gosched()
	wg.Go(e.Close)
	e.Close()
	wg.Wait()
	if _, err := e.Extract(context.Background(), data); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestNewRefusesInvalidConfig(t *testing.T) {
	t.Parallel()
	pack := enginetest.Pack(t)
	for _, cfg := range []engine.Config{{Workers: -1}, {Workers: 1 << 20}, {Queue: -1}, {DecodeBytes: -1}} {
		cfg.Library = enginetest.Library(t)
		if e, err := engine.New(pack, cfg); err == nil {
			e.Close()
			t.Errorf("%+v was taken", cfg)
		}
	}
}

func FuzzExtract(f *testing.F) {
	face := redrawn(pixels(f, "scikit-image/astronaut.png"), 140, 140, func(x, y float64) (float64, float64) { return x + 160, y + 40 })
	f.Add(asPNG(f, face))
	f.Add(asJPEG(f, face))
	f.Add(withOrientation(asJPEG(f, face), 6))
	f.Add([]byte{})
	e := enginetest.Shared(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && c.Width*c.Height > 1<<18 {
			return
		}
		faces, err := e.Extract(context.Background(), data)
		if err != nil {
			if !errors.Is(err, engine.ErrImage) {
				t.Fatal(err)
			}
			return
		}
		for _, face := range faces {
			if norm := score.Dot(face.Template, face.Template); math.Abs(float64(norm)-1) > 1e-4 {
				t.Fatalf("template of norm %v", norm)
			}
		}
	})
}
