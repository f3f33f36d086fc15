package imaging_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/engine/imaging/heif/heiftest"
	"facet/internal/must"
)

var (
	judgedFiles = flag.Int("judged.files", 100, "how many changed files are decoded beside another reader")
	judgedSeed  = flag.Uint64("judged.seed", 1, "the seed of those files")
	judgedKeep  = flag.String("judged.keep", "", "an existing folder for files that fail")
)

const (
	judgedPixels  = 1 << 19 // of a changed file whose head says more, the pixels are not looked at
	judgedWorkers = 2
	judgedShown   = 40 // failures, after which no more files are read
	judgedHEIC    = 25 // one in so many draws of a HEIC is read, which takes processes
)

// judged is a file that facet and the reader both read.
type judged struct {
	format string
	from   *sample // the file that it was made from
	how    string  // it was changed, empty if it was not
	data   []byte
}

// judge compares what facet and the reader make of files.
type judge struct {
	reader *reader
	face   []uint8 // another picture, over which each file is decoded

	mu     sync.Mutex
	counts map[string]int
}

// judgedRare has numbers of changed files of seed 1: each runs lines of the decoders that none of the
// 3,000 files before it runs, by testing.Coverage.
var judgedRare = []int{
	113, 177, 183, 192, 218, 382, 396, 431, 473, 674, 712, 716, 751, 777, 826, 863, 883, 943, 1047, 1160, 1391, 1536,
	1775, 1837, 1890, 1917, 1938, 2157, 2626, 2762, 2813,
}

// judgedSeeds are the files of testdata/judged, each of which was read wrongly once, and
// whether it is read. testdata/README.md says how they were read.
var judgedSeeds = map[string]bool{
	"alpha.heic":              false,
	"code-order.webp":         false,
	"compression-0.tif":       false,
	"band-ends.jpg":           false,
	"group3-lines.tif":        false,
	"transparent-bits.png":    false,
	"cut-before-exif.webp":    false,
	"essential.heic":          false,
	"exif-behind-pixels.png":  true,
	"exif-behind-simple.webp": true,
	"exif-big.webp":           true,
	"exif-first.webp":         false,
	"exif-twice.webp":         true,
	"first-chunk.png":         false,
	"header-16.bmp":           false,
	"not-shown.webp":          false,
	"orientation-byte.tif":    false,
	"orientation-signed.tif":  true,
	"palette-long.tif":        false,
	"predictor-8.tif":         false,
	"predictor-raw.tif":       false,
	"samples-gone.tif":        false,
	"second-frame.jpg":        false,
	"second-scan.jpg":         false,
	"short-palette.bmp":       false,
	"stray-bytes.jpg":         true,
	"two-colours.tif":         false,
	"two-pictures.webp":       true,
}

// Thousands of files are read by facet and by Pillow: photos in every format and variant that
// docs/formats/images.md names, and copies of them that are cut, damaged, spliced, extended,
// or have odd heads. Both show the same picture, within the bound that boundOf states, or
// facet refuses the file. A copy in which Pillow finds a fault shows the picture of the whole file,
// and so does one that is only cut or extended. What is decoded does not depend
// on the memory that it is decoded into. A longer run:
//
//	go test -tags hashicorpmetrics ./engine/imaging -run Judged -timeout 2h -judged.files 100000 -judged.seed 7
func TestJudgedFilesShowReadersPicture(t *testing.T) {
	j := newJudge(t)
	samples, err := j.reader.samples(filepath.Join(enginetest.Assets(t), "photos"), *judgedSeed)
	must.Do(t, err)
	heads := oddHeads(t)
	for _, name := range slices.Sorted(maps.Keys(heads)) {
		samples = append(samples, sample{name: name, data: heads[name].data})
	}
	shapes := heiftest.Shapes(t, fixture(t, "plain.heic"), 64, fixture(t, "slices.heic"))
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		samples = append(samples, sample{name: "HEIC " + name, data: shapes[name].Bytes()})
	}
	for _, name := range slices.Sorted(maps.Keys(judgedSeeds)) {
		if s := (sample{name: name, data: fixture(t, filepath.Join("judged", name))}); judgedSeeds[name] {
			samples = append(samples, s)
		} else if _, err := imaging.Decode(s.data); !errors.Is(err, imaging.ErrDecode) {
			t.Errorf("%s: got %v, want ErrDecode", name, err)
		}
	}
	files := make(chan judged)
	var workers sync.WaitGroup
	for range judgedWorkers {
		workers.Go(func() {
			for f := range files {
				j.judge(t, f)
			}
		})
	}
	byFormat := map[string][]*sample{}
	for i := range samples {
		s := &samples[i]
		c, err := imaging.DecodeConfig(s.data)
		if err == nil {
			s.whole, err = j.decode(t, c, s.data, imaging.Whole)
		}
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		byFormat[c.Format] = append(byFormat[c.Format], s)
		files <- judged{format: c.Format, from: s, data: s.data}
	}
	for i := range *judgedFiles {
		files <- changed(*judgedSeed, i, byFormat)
	}
	for _, i := range judgedRare {
		if i >= *judgedFiles {
			files <- changed(*judgedSeed, i, byFormat)
		}
	}
	close(files)
	workers.Wait()
	for _, what := range slices.Sorted(maps.Keys(j.counts)) {
		t.Logf("%6d %s", j.counts[what], what)
	}
	for _, name := range imaging.Formats() {
		if n := j.counts[name+", read alike"]; n < len(byFormat[name]) || n == 0 {
			t.Errorf("%d files of %s were read alike, want %d or more", n, name, len(byFormat[name]))
		}
	}
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	face := decode(t, enginetest.Photo(t, "face_recognition/obama.jpg"))
	return &judge{reader: startReader(t), face: face.Pix, counts: map[string]int{}}
}

// changed returns the i-th file of a seed.
func changed(seed uint64, i int, byFormat map[string][]*sample) judged {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	names := imaging.Formats()
	name := names[r.IntN(len(names))]
	if name == "HEIC" && r.IntN(judgedHEIC) > 0 {
		name = "JPEG"
	}
	list := byFormat[name]
	from, other := list[r.IntN(len(list))], list[r.IntN(len(list))]
	how, data := mutate(r, name, from.data, other.data)
	return judged{name, from, fmt.Sprintf("%s (file %d)", how, i), data}
}

// judge fails the test if facet reads a file wrongly.
func (j *judge) judge(t *testing.T, f judged) {
	j.mu.Lock()
	enough := j.counts["wrong"] >= judgedShown
	j.mu.Unlock()
	if enough {
		return
	}
	outcome, err := j.compare(t, f)
	if err == nil {
		j.count(f.format + ", " + outcome)
		return
	}
	j.count("wrong")
	where := ""
	if *judgedKeep != "" {
		sum := fnv.New32()
		_, _ = sum.Write(f.data) // never fails
		name := filepath.Join(*judgedKeep, fmt.Sprintf("%08x.%s", sum.Sum32(), strings.ToLower(f.format)))
		if err := os.WriteFile(name, f.data, 0o600); err != nil {
			t.Error(err)
		}
		where = ", kept as " + name
	}
	t.Errorf("seed %d, %s, %s: %v%s", *judgedSeed, f.from.name, f.how, err, where)
}

func (j *judge) count(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts[what]++
}

// compare returns how a file was read, or what is wrong about that.
func (j *judge) compare(t *testing.T, f judged) (outcome string, err error) {
	c, err := imaging.DecodeConfig(f.data)
	if err == nil && c.Width*c.Height > judgedPixels && f.how != "" {
		return "not judged: large", nil
	}
	var im *imaging.Image
	if err == nil {
		im, err = j.decode(t, c, f.data, imaging.Whole)
	}
	if errors.Is(err, imaging.ErrDecode) && f.how != "" {
		return "refused", nil
	}
	if err != nil {
		return "", err
	}
	kept := same(im, f.from.whole)
	if !kept && (strings.HasPrefix(f.how, mutationCut) || strings.HasPrefix(f.how, mutationTrail)) {
		return "", errors.New("it is not the picture of the whole file")
	}
	want, err := j.reader.read(f.data, imaging.Whole)
	if err != nil {
		return "", err
	}
	b := boundOf(c.Format, f.data, kept)
	wrong := alike(im, &want.im, b)
	switch {
	case strings.Contains(want.refused, "guessed: ") && !kept:
		return "not judged: damaged fax", nil // it has no checksum, and the reader guesses
	case want.refused != "" && !kept:
		return "", fmt.Errorf("the reader refuses it: %s", want.refused)
	case want.refused != "":
		outcome = "kept whole, the reader finds a fault"
	case wrong != nil && kept && c.Format == "HEIC":
		outcome = "kept whole, the reader sees damage" // in what libde265 1.0.15 does not look at
	case wrong != nil:
		return "", wrong
	default:
		outcome = "read alike"
	}
	if c.Format == "JPEG" {
		// Of damaged pixels the two show different things: JPEG has no checksum.
		other, err := j.decode(t, c.Standard(), f.data, imaging.Whole)
		if err == nil && kept {
			err = alike(other, im, boundOf(c.Format, f.data, false))
		}
		if err != nil && !errors.Is(err, imaging.ErrDecode) {
			return "", fmt.Errorf("by the standard library: %w", err)
		}
	}
	if c.Format == "HEIC" {
		return outcome, nil // each takes a process, and all are shrunk alike
	}
	for _, s := range []imaging.Shrink{imaging.Half, imaging.Quarter, imaging.Eighth} {
		small, err := j.decode(t, c, f.data, s)
		if err == nil && c.Format == "JPEG" && want.refused == "" {
			want, err = j.reader.read(f.data, s)
			if err == nil {
				err = alike(small, &want.im, b)
			}
		}
		if err != nil {
			return "", fmt.Errorf("shrunk by %d: %w", s, err)
		}
	}
	return outcome, nil
}

// decode decodes twice: into memory that holds a face, and into memory that holds its
// negative. A pixel that is left as it was differs.
func (j *judge) decode(t *testing.T, c imaging.Config, data []byte, s imaging.Shrink) (*imaging.Image, error) {
	before := bytes.Clone(j.face[:min(4*c.Width*c.Height, len(j.face))])
	var ims [2]imaging.Image
	var errs [2]error
	for i := range ims {
		imaging.LeaveBuffer(bytes.Clone(before))
		ims[i] = imaging.Image{Width: 1, Height: 1, Pix: bytes.Clone(before)}
		errs[i] = c.DecodeInto(t.Context(), &ims[i], data, s)
		for i := range before {
			before[i] ^= 0xff
		}
	}
	switch {
	case (errs[0] == nil) != (errs[1] == nil):
		return nil, fmt.Errorf("decoded twice it is refused once: %v, %v", errs[0], errs[1]) //nolint:errorlint // it is no refusal
	case errs[0] != nil:
		return nil, errs[0]
	case !same(&ims[0], &ims[1]):
		return nil, errors.New("decoded twice it is two pictures")
	}
	return &ims[0], nil
}

func same(a, b *imaging.Image) bool {
	return a.Width == b.Width && a.Height == b.Height && bytes.Equal(a.Pix, b.Pix)
}

// bound is the difference that a value of a pixel may have.
type bound struct {
	base   int
	around bool // and the range of the reader's values within two pixels
	spare  int  // one value of so many may differ by more
	border int  // of so many pixels the values are not compared
}

// boundOf states the bound. What is lossless agrees but for the rounding of 16 bits. In
// JPEG, HEIC and lossy WebP facet takes the nearest sample of chroma where the reader
// interpolates, which tells most where damage made hard edges. At the border of a HEIC
// facet's libde265, 1.0.15, filters chroma otherwise than the reader's.
func boundOf(format string, data []byte, kept bool) bound {
	b := bound{base: 8, around: true, spare: 40}
	if kept {
		b.spare = 500
	}
	switch {
	case format == "JPEG" || format == "WebP" && !lossless(data):
		return b
	case format == "HEIC":
		b.border = 4
		return b
	}
	return bound{base: 2}
}

// lossless reports whether the picture of a WebP is.
func lossless(data []byte) bool {
	for _, part := range riffChunks(data) {
		if kind := string(part[:min(4, len(part))]); kind == "VP8L" || kind == "VP8 " {
			return kind == "VP8L"
		}
	}
	return false
}

// alike returns how two pictures differ beyond the bound.
func alike(got, want *imaging.Image, b bound) error {
	if got.Width != want.Width || got.Height != want.Height {
		return fmt.Errorf("%d × %d pixels, the reader sees %d × %d", got.Width, got.Height, want.Width, want.Height)
	}
	wrong, worst, at := 0, 0, 0
	for i, v := range got.Pix {
		over := max(int(v)-int(want.Pix[i]), int(want.Pix[i])-int(v)) - b.base
		if over <= 0 {
			continue
		}
		x, y := i/3%got.Width, i/3/got.Width
		if min(x, y, got.Width-1-x, got.Height-1-y) < b.border {
			continue
		}
		if b.around {
			over -= rangeAround(want, x, y, i%3)
		}
		if over > 0 {
			wrong++
		}
		if over > worst {
			worst, at = over, i
		}
	}
	if wrong == 0 || b.spare > 0 && wrong*b.spare <= len(got.Pix) {
		return nil
	}
	return fmt.Errorf("%d of %d values differ, most at (%d, %d): got %d, the reader sees %d",
		wrong, len(got.Pix), at/3%got.Width, at/3/got.Width, got.Pix[at], want.Pix[at])
}

// rangeAround returns the range of a channel within two pixels.
func rangeAround(im *imaging.Image, x, y, channel int) int {
	least, most := uint8(255), uint8(0)
	for v := max(0, y-2); v <= min(im.Height-1, y+2); v++ {
		for u := max(0, x-2); u <= min(im.Width-1, x+2); u++ {
			p := im.Pix[3*(v*im.Width+u)+channel]
			least, most = min(least, p), max(most, p)
		}
	}
	return int(most) - int(least)
}
