package heif_test

import (
	"errors"
	"image"
	"os"
	"path/filepath"
	"testing"
	"time"

	"facet/engine/imaging/heif"
	"facet/internal/must"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", name))
	must.Do(t, err)
	return data
}

func TestHeadMatchesDecodedPicture(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]heif.Head{
		"plain.heic":  {Width: 56, Height: 44, Pixels: 64 * 64},
		"turned.heic": {Width: 56, Height: 44, Pixels: 64 * 64},
		"grey.heic":   {Width: 56, Height: 44, Pixels: 64 * 64},
		"444.heic":    {Width: 56, Height: 44, Pixels: 64 * 64},
		"grid.heic":   {Width: 112, Height: 44, Pixels: 2 * 64 * 64},
	} {
		data := fixture(t, name)
		h, err := heif.ReadHead(data)
		if err != nil || h.Width != want.Width || h.Height != want.Height || h.Pixels != want.Pixels {
			t.Errorf("%s: got %+v, error %v; want %+v", name, h, err, want)
			continue
		}
		err = heif.Decode(t.Context(), data, h, func(im image.Image) error {
			if got := im.Bounds().Size(); got != image.Pt(want.Width, want.Height) {
				t.Errorf("%s: the picture is %v", name, got)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPictureBeyondMemoryFailsAlone(t *testing.T) {
	t.Parallel()
	data := fixture(t, "plain.heic")
	none := func(image.Image) error { return nil }
	h, err := heif.ReadHead(data)
	must.Do(t, err)
	if err := heif.DecodeIn(t.Context(), data, h, 3<<16, none); err == nil {
		t.Error("three pages are enough")
	}
	if err := heif.Decode(t.Context(), data, h, none); err != nil {
		t.Errorf("the next picture: %v", err)
	}
}

func TestUseErrorIsReturned(t *testing.T) {
	t.Parallel()
	data := fixture(t, "plain.heic")
	h, err := heif.ReadHead(data)
	must.Do(t, err)
	want := errors.New("no")
	if err := heif.Decode(t.Context(), data, h, func(image.Image) error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

func FuzzReadHead(f *testing.F) {
	for _, name := range []string{"plain.heic", "turned.heic", "grid.heic", "grey.heic"} {
		f.Add(fixture(f, name))
	}
	for _, file := range shapes(f) {
		f.Add(file.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := heif.ReadHead(data)
		if err == nil && (h.Width < 0 || h.Height < 0 || h.Pixels < 0) {
			t.Fatalf("%+v", h)
		}
	})
}

// FuzzDecode gives whatever the head admits to the decoder: it must end soon, in
// its memory, and leave the process alone.
func FuzzDecode(f *testing.F) {
	must.Do(f, heif.Warm())
	for _, name := range []string{"plain.heic", "turned.heic", "grid.heic"} {
		f.Add(fixture(f, name))
	}
	for _, file := range shapes(f) {
		f.Add(file.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := heif.ReadHead(data)
		if err != nil || h.Pixels > 1<<18 || h.Width*h.Height > 1<<18 {
			return
		}
		began := time.Now()
		_ = heif.Decode(t.Context(), data, h, func(image.Image) error { return nil }) // any answer will do
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("took %v", took)
		}
	})
}
