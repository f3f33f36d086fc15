package imaging_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/engine/imaging"
	"facet/internal/must"
)

// fixture returns a file of testdata; its README says how they were made.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must.Do(t, err)
	return data
}

// fixtures returns the names of all files of testdata that show the one picture and
// are to be read.
func fixtures(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("testdata")
	must.Do(t, err)
	var names []string
	for _, e := range entries {
		switch name := e.Name(); name {
		case "README.md", "slices.heic", "judge", "judged":
		default:
			names = append(names, name)
		}
	}
	if len(names) < 30 {
		t.Fatalf("found %d fixtures", len(names))
	}
	return names
}

// both calls f with the config as it is, and with the standard library for JPEG.
func both(t testing.TB, data []byte, f func(by string, c imaging.Config)) {
	t.Helper()
	c, err := imaging.DecodeConfig(data)
	must.Do(t, err)
	f(imaging.JPEGDecoder(), c)
	if c.Format == "JPEG" {
		f("standard library", c.Standard())
	}
}

func grey(im *imaging.Image) *imaging.Image {
	out := imaging.NewImage(im.Width, im.Height)
	for i := 0; i < len(im.Pix); i += 3 {
		v := uint8((299*int(im.Pix[i]) + 587*int(im.Pix[i+1]) + 114*int(im.Pix[i+2])) / 1000)
		out.Pix[i], out.Pix[i+1], out.Pix[i+2] = v, v, v
	}
	return out
}

// washed is an image of half the opacity on white.
func washed(im *imaging.Image) *imaging.Image {
	out := imaging.NewImage(im.Width, im.Height)
	for i, v := range im.Pix {
		out.Pix[i] = uint8((128*int(v) + 255*127 + 127) / 255)
	}
	return out
}

// left is the left part of an image.
func left(im *imaging.Image, width int) *imaging.Image {
	out := imaging.NewImage(width, im.Height)
	for y := range im.Height {
		copy(out.Pix[3*width*y:][:3*width], im.Pix[3*im.Width*y:])
	}
	return out
}

func TestFormatsShowSamePicture(t *testing.T) {
	t.Parallel()
	truth, bilevel := decode(t, fixture(t, "truth.png")), decode(t, fixture(t, "bilevel.png"))
	formats := map[string]bool{}
	for _, name := range fixtures(t) {
		data := fixture(t, name)
		want := truth
		switch {
		case strings.HasPrefix(name, "bilevel"):
			want = bilevel
		case name == "planes-alpha.tif":
			want = washed(truth)
		case strings.HasPrefix(name, "grey") || name == "packbits.tif":
			want = grey(truth)
		}
		within := 6.0 // lossy, with chroma of half the size, on a picture of 56 × 44
		switch {
		case strings.Contains(name, "deflate") || strings.HasPrefix(name, "lossless") || strings.HasPrefix(name, "raw") ||
			strings.HasPrefix(name, "planes") || strings.HasPrefix(name, "bilevel") || name == "exif6.tif" ||
			name == "24.bmp" || name == "32.bmp" || name == "fields32.bmp" || name == "truth.png":
			within = 0
		case strings.HasPrefix(name, "grey") || name == "packbits.tif":
			within = 2
		case strings.Contains(name, "444"):
			within = 4
		}
		both(t, data, func(by string, c imaging.Config) {
			formats[c.Format] = true
			im := new(imaging.Image)
			if err := c.DecodeInto(t.Context(), im, data, imaging.Whole); err != nil {
				t.Errorf("%s by %s: %v", name, by, err)
				return
			}
			if name == "grid.heic" {
				im = left(im, truth.Width)
			}
			got := distance(im, want)
			t.Logf("%-20s %-5s %-36s mean difference %.2f", name, c.Format, by, got)
			if got > within {
				t.Errorf("%s by %s: %d × %d, mean difference %.2f, want %.2f or less", name, by, im.Width, im.Height, got, within)
			}
		})
	}
	for _, f := range imaging.Formats() {
		if !formats[f] {
			t.Errorf("no fixture is of format %s", f)
		}
	}
}

// boxed is the definition of shrinking, written anew.
func boxed(im *imaging.Image, s int) *imaging.Image {
	w, h := (im.Width+s-1)/s, (im.Height+s-1)/s
	out := imaging.NewImage(w, h)
	for y := range h {
		for x := range w {
			for c := range 3 {
				sum, n := 0, 0
				for j := s * y; j < min(s*y+s, im.Height); j++ {
					for i := s * x; i < min(s*x+s, im.Width); i++ {
						sum += int(im.Pix[3*(im.Width*j+i)+c])
						n++
					}
				}
				out.Pix[3*(w*y+x)+c] = uint8((2*sum + n) / (2 * n))
			}
		}
	}
	return out
}

func TestShrinkingIsBoxFilter(t *testing.T) {
	t.Parallel()
	for _, name := range fixtures(t) {
		data := fixture(t, name)
		if strings.HasSuffix(name, ".heic") && name != "grid.heic" {
			continue // each takes a process, and they are shrunk alike
		}
		both(t, data, func(by string, c imaging.Config) {
			whole, im := new(imaging.Image), new(imaging.Image)
			if err := c.DecodeInto(t.Context(), whole, data, imaging.Whole); err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			within := 0.0
			if c.Format == "JPEG" && by == imaging.JPEGDecoder() {
				within = 4 // by the cosine transform, and at 8 on a picture of 7 × 6
			}
			for _, s := range []imaging.Shrink{imaging.Half, imaging.Quarter, imaging.Eighth} {
				if err := c.DecodeInto(t.Context(), im, data, s); err != nil {
					t.Errorf("%s shrunk by %d: %v", name, s, err)
					continue
				}
				if got := distance(im, boxed(whole, int(s))); got > within {
					t.Errorf("%s by %s shrunk by %d: %d × %d, mean difference %.2f, want %.2f or less", name, by, s, im.Width, im.Height, got, within)
				}
				if c.Bytes(s) >= c.Bytes(imaging.Whole) {
					t.Errorf("%s shrunk by %d takes %d bytes, whole %d", name, s, c.Bytes(s), c.Bytes(imaging.Whole))
				}
			}
		})
	}
}

func TestOrientationEqualsAtEveryShrink(t *testing.T) {
	t.Parallel()
	picture := drawn(67, 53)
	for o := 1; o <= 8; o++ {
		data := withEXIF(asJPEG(t, storedAs(picture, o)), tiff(binary.LittleEndian, uint16(o)))
		both(t, data, func(by string, c imaging.Config) {
			for _, s := range []imaging.Shrink{imaging.Whole, imaging.Half, imaging.Quarter, imaging.Eighth} {
				im := new(imaging.Image)
				must.Do(t, c.DecodeInto(t.Context(), im, data, s))
				w, h := (67+int(s)-1)/int(s), (53+int(s)-1)/int(s)
				if im.Width != w || im.Height != h {
					t.Errorf("orientation %d, shrunk by %d, %s: %d × %d, want %d × %d", o, s, by, im.Width, im.Height, w, h)
					continue
				}
				// The colour of a corner of the upright picture.
				if px := im.Pix[:3]; px[0] > 60 || px[1] > 60 {
					t.Errorf("orientation %d, shrunk by %d, %s: the corner is %v", o, s, by, px)
				}
				if px := im.Pix[len(im.Pix)-3:]; px[0] < 195 || px[1] < 195 {
					t.Errorf("orientation %d, shrunk by %d, %s: the last corner is %v", o, s, by, px)
				}
			}
		})
	}
}

func TestTruncatedFileFailsAtOnce(t *testing.T) {
	t.Parallel()
	const most = 200 * time.Millisecond
	for _, name := range fixtures(t) {
		data := fixture(t, name)
		for i := range 16 {
			cut := data[:len(data)*i/16]
			var c imaging.Config
			var err error
			took := quickest(most, func() {
				if c, err = imaging.DecodeConfig(cut); err == nil {
					err = c.DecodeInto(t.Context(), new(imaging.Image), cut, imaging.Whole)
				}
			})
			if !errors.Is(err, imaging.ErrDecode) && !whole(name, i) {
				t.Errorf("%s, %d of 16: got %v, want ErrDecode", name, i, err)
			}
			if took > most {
				t.Errorf("%s, %d of 16: took %v", name, i, took)
			}
			if c.Format == "JPEG" {
				if err := c.Standard().DecodeInto(t.Context(), new(imaging.Image), cut, imaging.Whole); err == nil {
					t.Errorf("%s, %d of 16: the standard library reads it", name, i)
				}
			}
		}
	}
}

// quickest returns the shortest time that f takes in up to ten tries, until one takes at most
// enough. The load of the machine slows some tries, a slow f slows all.
func quickest(enough time.Duration, f func()) time.Duration {
	least := time.Duration(math.MaxInt64)
	for try := 0; try < 10 && least > enough; try++ {
		began := time.Now()
		f()
		least = min(least, time.Since(began))
	}
	return least
}

// whole tells that the first frame of an animation is in i sixteenths of it.
func whole(name string, i int) bool { return name == "animated.gif" && i >= 8 }

func TestFrameIsPlacedOnWhite(t *testing.T) {
	t.Parallel()
	const left, top, right, bottom = 2, 4, 2, 2
	data := fixture(t, "animated.webp")
	frame := decode(t, data)
	data[24], data[27] = data[24]+left+right, data[27]+top+bottom // the canvas
	at := bytes.Index(data, []byte("ANMF")) + 8
	data[at], data[at+3] = left/2, top/2
	got, want := decode(t, data), imaging.NewImage(frame.Width+left+right, frame.Height+top+bottom)
	for i := range want.Pix {
		want.Pix[i] = 255
	}
	for y := range frame.Height {
		copy(want.Pix[3*((y+top)*want.Width+left):], frame.Pix[3*y*frame.Width:][:3*frame.Width])
	}
	if got.Width != want.Width || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("a frame of %d × %d at %d, %d is shown elsewhere", frame.Width, frame.Height, left, top)
	}
}

func TestRefusalNamesAllFormats(t *testing.T) {
	t.Parallel()
	_, err := imaging.DecodeConfig([]byte("hello, this is no image at all"))
	for _, f := range imaging.Formats() {
		if err == nil || !strings.Contains(err.Error(), f) {
			t.Errorf("error %v does not name %s", err, f)
		}
	}
}

func TestDecodeStopsWithContext(t *testing.T) {
	t.Parallel()
	data := fixture(t, "plain.heic")
	c, err := imaging.DecodeConfig(data)
	must.Do(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.DecodeInto(ctx, new(imaging.Image), data, imaging.Whole); !errors.Is(err, context.Canceled) || errors.Is(err, imaging.ErrDecode) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// A picture is decoded with the compiled decoder of the process. Without one the first picture compiles
// it for the next ones.
func TestWarmedHEICDecoderIsReused(t *testing.T) {
	data := fixture(t, "plain.heic")
	c, err := imaging.DecodeConfig(data)
	must.Do(t, err)
	f := func() {
		t.Helper()
		im := new(imaging.Image)
		if err := c.DecodeInto(t.Context(), im, data, imaging.Whole); err != nil || im.Width != c.Width {
			t.Errorf("got %d pixels a row, %v", im.Width, err)
		}
	}
	f()
	warm := imaging.Cool()
	defer warm()
	t.Setenv("TMPDIR", t.TempDir())
	cool, err := imaging.Keep()
	must.Do(t, err)
	f()
	if compiled, err := filepath.Glob(filepath.Join(os.TempDir(), "facet-heic-decoder-*", "*", "*")); err != nil || len(compiled) != 1 {
		t.Errorf("the first picture has left %v, %v", compiled, err)
	}
	must.Do(t, cool())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := imaging.Warm(ctx); err == nil {
		t.Error("no error of an ended context")
	}
}

func TestTrailingBytesAreIgnored(t *testing.T) {
	t.Parallel()
	for _, name := range fixtures(t) {
		if strings.HasSuffix(name, ".heic") && name != "plain.heic" {
			continue // each takes a process
		}
		data := fixture(t, name)
		want := decode(t, data)
		for _, behind := range []string{"\x00", "\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xd8\xff\xff\xff\xff\xff\xff\xff\xff", "and text"} {
			im, err := imaging.Decode(append(bytes.Clone(data), behind...))
			if err != nil {
				t.Errorf("%s with %q behind: %v", name, behind, err)
			} else if d := distance(im, want); d > 0 {
				t.Errorf("%s with %q behind: mean difference %.1f", name, behind, d)
			}
		}
	}
}

// The standard library's images are overwritten when their pixels were taken over.
func TestDecoderWipesLibraryImage(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, name := range fixtures(t) {
		data := fixture(t, name)
		c, err := imaging.DecodeConfig(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before, now, ok := c.Standard().Colours(data)
		if !ok {
			continue
		}
		if tried++; before < 2 || now != 1 {
			t.Errorf("%s: %d colours, %d after the wipe, want 1", name, before, now)
		}
	}
	if tried < 15 {
		t.Errorf("only %d files were tried", tried)
	}
}
