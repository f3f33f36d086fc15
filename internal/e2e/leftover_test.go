package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"facet/engine"
	"facet/internal/must"
	"facet/internal/testkit"
)

// oddJPEG returns a JPEG of which libjpeg warns before its first pixel: its JFIF
// version does not exist.
func oddJPEG(t *testing.T, im image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, jpeg.Encode(&out, im, nil))
	jfif := []byte("\xff\xe0\x00\x10JFIF\x00\xff\x01\x00\x00\x01\x00\x01\x00\x00")
	return slices.Concat(out.Bytes()[:2], jfif, out.Bytes()[2:])
}

// files returns a file of each kind that facet reads, some with a face.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	portrait, err := shrunk(biden) // of another person than the one that a test build leaves in memory
	must.Do(t, err)
	list := map[string][]byte{"grey, odd head": oddJPEG(t, greyLike(portrait)), "portrait, odd head": oddJPEG(t, portrait)}
	for name, encode := range map[string]func(*bytes.Buffer, image.Image) error{
		"portrait.png":  func(w *bytes.Buffer, im image.Image) error { return png.Encode(w, im) },
		"portrait.gif":  func(w *bytes.Buffer, im image.Image) error { return gif.Encode(w, im, nil) },
		"portrait.bmp":  func(w *bytes.Buffer, im image.Image) error { return bmp.Encode(w, im) },
		"portrait.tiff": func(w *bytes.Buffer, im image.Image) error { return tiff.Encode(w, im, nil) },
	} {
		var out bytes.Buffer
		must.Do(t, encode(&out, portrait))
		list[name] = out.Bytes()
	}
	for _, name := range []string{
		"cmyk.jpg", "progressive.jpg", "interlaced.gif", "palette.png", "24.bmp", "lossy.webp", "raw.tif", "grid.heic",
	} {
		data := read(t, filepath.Join(root, "engine", "imaging", "testdata", name))
		list[name] = data
	}
	return list
}

// greyLike returns a plain grey picture of another one's size.
func greyLike(other image.Image) image.Image {
	im := image.NewGray(other.Bounds())
	for i := range im.Pix {
		im.Pix[i] = 128
	}
	return im
}

// The test sends portraits of one tenant and files of every kind of another to the
// only worker of a node. Each answer to a file must equal the answer of an engine
// that has just seen another file.
func TestAnswersShowNothingOfOtherTenants(t *testing.T) {
	t.Parallel()
	c := serve(t, program(), 1, 1, "--workers", "1")
	victim, thief := c.client(t, 10), c.client(t, 10)
	enrolled := victim.register(t, 0, obama)

	face := photo(t, obama)
	im, err := shrunk(obama)
	must.Do(t, err)
	blank := base64.StdEncoding.EncodeToString(oddJPEG(t, greyLike(im)))
	for range 2 {
		victim.extracted(t, face)
		thief.post(t, 0, "/v1.1/subjects", map[string]any{"face": blank}).WantRefused(t, "NoFace", 2001)
		victim.extracted(t, face)
		victim.post(t, 0, "/v1.1/face/verify", map[string]any{"id": enrolled.ID, "probe": blank}).WantRefused(t, "NoFace", 2001)
	}

	other := extractor(t)
	for name, data := range files(t) {
		victim.extracted(t, face)
		got := thief.extracted(t, data)
		if strings.HasPrefix(name, "portrait") && len(got) != 1 {
			t.Errorf("%s: %d faces, want 1", name, len(got))
		}
		if fresh := freshly(t, other, data); !slices.Equal(fresh, got) {
			t.Errorf("%s: behind another tenant's portrait %v, elsewhere %v", name, got, fresh)
		}
	}
}

// seen holds the answer of the interface about one face of an extraction, in its own
// notation.
type seen struct{ score, quality, eyeX, eyeY, roll, pan string }

// extracted returns the faces that a node finds, or none if it refuses the file.
func (k *client) extracted(t *testing.T, data []byte) (list []seen) {
	t.Helper()
	ask := func() testkit.Answer {
		return k.post(t, 0, "/v1.1/face/extract", map[string]any{"faces": base64.StdEncoding.EncodeToString(data)})
	}
	a := ask()
	for a.Status == http.StatusInternalServerError && bytes.Contains(a.Body, []byte(`"Timeout"`)) { // a busy machine gave HEIC too little time
		a = ask()
	}
	var got struct {
		Faces []struct {
			Attributes struct {
				FaceScore, FaceQualityScore, FaceRoll, FacePan string
				RightEyeCenter                                 struct{ X, Y string }
			}
		}
	}
	if a.Status == http.StatusBadRequest {
		return nil
	}
	a.Want(t, http.StatusOK, &got)
	for _, f := range got.Faces {
		x := f.Attributes
		list = append(list, seen{x.FaceScore, x.FaceQualityScore, x.RightEyeCenter.X, x.RightEyeCenter.Y, x.FaceRoll, x.FacePan})
	}
	return list
}

// decimal formats v as the interface does.
func decimal(v float32) string {
	if v == 0 {
		return "0" // not -0
	}
	return strconv.FormatFloat(float64(v), 'g', 6, 64)
}

// freshly returns what extracted would return of an engine.
func freshly(t *testing.T, e *engine.Engine, data []byte) (list []seen) {
	t.Helper()
	faces, err := e.Extract(t.Context(), data)
	for errors.Is(err, context.DeadlineExceeded) { // as in extracted
		faces, err = e.Extract(t.Context(), data)
	}
	if err != nil && !errors.Is(err, engine.ErrImage) {
		t.Fatal(err)
	}
	for _, f := range faces {
		a := f.Attributes
		x, y := math.Round(float64(a.RightEye.X)), math.Round(float64(a.RightEye.Y))
		list = append(list, seen{decimal(a.Score), decimal(a.Quality), fmt.Sprint(x), fmt.Sprint(y), decimal(a.Roll), decimal(a.Pan)})
	}
	return list
}
