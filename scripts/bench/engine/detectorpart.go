package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/jpeg"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/image/draw"

	"facet/engine"
	"facet/engine/imaging"
	"facet/engine/models"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

// The scenes of small faces: faces of the sample photos on a picture without one, in cells.
const (
	sceneWidth, sceneHeight = 1920, 1280
	sceneColumns, sceneRows = 5, 4 // engine.MaxFaces
	// facePart is the face area's side as a part of the cut piece's side.
	facePart = .5
	// facePlace is how far a found face may be from its place, in sides.
	facePlace = .4
)

// sceneSides are the sides of the face areas in the scenes, in pixels.
var sceneSides = []int{16, 20, 24, 32, 48, 80}

// detectors are the kinds that the part compares. Without a width, the detector is the pack's own.
var detectors = []struct{ width, height int }{{0, 0}, {320, 256}, {640, 480}}

// detectorPart compares the pack's detector with YuNet.
func (b *bench) detectorPart(ctx context.Context) error {
	base, err := b.files.Engine(1)
	if err != nil {
		return err
	}
	defer base.Close()
	scenes, err := b.scenes(ctx, base)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "facet-detectors-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(b.out, "\nDetectors, pack %s: faces found / there (false faces), median processor time of a picture\n",
		base.Pack().Manifest.Title())
	head := []string{"detector"}
	for _, s := range scenes {
		head = append(head, s.name)
	}
	table.Head(b.out, head...)
	for _, d := range detectors {
		name, e := base.Pack().Manifest.Detector.Kind, base
		if d.width > 0 {
			name = models.DetectorKind(fmt.Sprintf("%s %d × %d", models.KindYuNet, d.width, d.height))
			if e, err = b.withYuNet(dir, d.width, d.height); err != nil {
				return err
			}
			defer e.Close()
		}
		line := []string{string(name)}
		for _, s := range scenes {
			text, err := s.measure(ctx, e)
			if err != nil {
				return err
			}
			line = append(line, text)
		}
		table.Line(b.out, line...)
	}
	return nil
}

// withYuNet opens the pack with YuNet as its detector, for an input of this size.
func (b *bench) withYuNet(dir string, width, height int) (*engine.Engine, error) {
	made := filepath.Join(dir, "yunet.onnx")
	convert := exec.Command(filepath.Join(b.files.Assets, "venv", "bin", "python"), "scripts/setup/convert.py", "yunet",
		filepath.Join(b.files.Assets, "cache", "yunet_int8bq.onnx"), made, strconv.Itoa(width), strconv.Itoa(height))
	if out, err := convert.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: run make setup venv: %s", err, out)
	}
	network, err := os.ReadFile(made)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, fmt.Sprintf("%dx%d", width, height))
	if err := os.CopyFS(folder, os.DirFS(b.files.Pack())); err != nil {
		return nil, err
	}
	manifest := make(map[string]any)
	text, err := os.ReadFile(filepath.Join(folder, models.ManifestName))
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(network)
	for _, f := range manifest["files"].([]any) {
		if f := f.(map[string]any); f["role"] == string(models.RoleDetector) {
			f["name"], f["size"], f["sha256"] = "yunet.onnx", len(network), hex.EncodeToString(sum[:])
		}
	}
	detector := manifest["detector"].(map[string]any)
	detector["kind"], detector["minScore"], detector["minTileScore"] = models.KindYuNet, yunetLeast, yunetLeast
	detector["input"] = models.Input{Width: width, Height: height, Channels: models.BGR, Mean: []float32{0, 0, 0}, Scale: []float32{1, 1, 1}}
	if text, err = json.Marshal(manifest); err != nil {
		return nil, err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(folder, "yunet.onnx"), network, 0o600),
		os.WriteFile(filepath.Join(folder, models.ManifestName), text, 0o600),
	); err != nil {
		return nil, err
	}
	return b.files.EngineOf(folder, 1)
}

// yunetLeast is the least score of a YuNet's box.
const yunetLeast = .6

// scene is a row of pictures with the places of their faces.
type scene struct {
	name     string
	pictures []picture
}

type picture struct {
	data []byte
	// faces are the places, or nil if only their number is known.
	faces []image.Rectangle
	count int
}

// measure returns how many faces of the scene the engine finds, as text.
func (s *scene) measure(ctx context.Context, e *engine.Engine) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	found, there, wrong := 0, 0, 0
	var spent machine.Sample
	for _, p := range s.pictures {
		began := machine.ThreadTime()
		faces, err := e.Extract(ctx, p.data)
		if err != nil {
			return "", err
		}
		spent = append(spent, machine.ThreadTime()-began)
		right := p.right(faces)
		found, there, wrong = found+right, there+p.count, wrong+len(faces)-right
	}
	return fmt.Sprintf("%d/%d (%d), %.0f ms", found, there, wrong, spent.MS(.5)), nil
}

// right returns how many of the faces are where the picture has one.
func (p *picture) right(faces []engine.Face) int {
	if p.faces == nil {
		return min(len(faces), p.count)
	}
	right := 0
	for _, r := range p.faces {
		x, y := float64(r.Min.X+r.Max.X)/2, float64(r.Min.Y+r.Max.Y)/2
		for _, f := range faces {
			a := f.Attributes.Face
			if math.Hypot(float64(a.Left+a.Right)/2-x, float64(a.Top+a.Bottom)/2-y) < facePlace*float64(r.Dx()) {
				right++
				break
			}
		}
	}
	return right
}

// groups are sample photos, and how many faces a person sees on them.
var groups = map[string]int{
	"face-api/sample1.jpg": 3, "face-api/sample2.jpg": 3, "face-api/sample3.jpg": 3,
	"face-api/sample4.jpg": 4, "face-api/sample5.jpg": 5, "face-api/sample6.jpg": 4,
}

// portraits are sample photos of one face, faceless those of none.
var (
	portraits = []string{
		"face_recognition/obama.jpg", "face_recognition/obama2.jpg", "face_recognition/obama3.jpg",
		"face_recognition/biden.jpg", "scikit-image/astronaut.png",
	}
	faceless = []string{
		"scikit-image/coffee.png", "scikit-image/chelsea.png", "scikit-image/rocket.jpg", "scikit-image/hubble_deep_field.jpg",
	}
)

// scenes returns the sample photos, and scenes of their faces made small.
func (b *bench) scenes(ctx context.Context, e *engine.Engine) ([]scene, error) {
	list := []scene{{name: "portraits"}, {name: "groups"}, {name: "no face"}}
	var pieces []*image.RGBA
	add := func(to int, name string, count int) error {
		data, err := os.ReadFile(filepath.Join(b.files.Assets, "photos", filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("%w: run make setup", err)
		}
		list[to].pictures = append(list[to].pictures, picture{data: data, count: count})
		if count == 0 {
			return nil
		}
		cut, err := facesOf(ctx, e, data)
		pieces = append(pieces, cut...)
		return err
	}
	for _, name := range portraits {
		if err := add(0, name, 1); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if err := add(1, name, groups[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range faceless {
		if err := add(2, name, 0); err != nil {
			return nil, err
		}
	}
	for _, side := range sceneSides {
		s := scene{name: strconv.Itoa(side) + " px"}
		for first := range 2 {
			p, err := compose(pieces, first*len(pieces)/2, side)
			if err != nil {
				return nil, err
			}
			s.pictures = append(s.pictures, p)
		}
		list = append(list, s)
	}
	return list, nil
}

// facesOf cuts the faces out of a photo, each with its surroundings.
func facesOf(ctx context.Context, e *engine.Engine, data []byte) (list []*image.RGBA, err error) {
	faces, err := e.Extract(ctx, data)
	if err != nil {
		return nil, err
	}
	im, err := imaging.Decode(data)
	if err != nil {
		return nil, err
	}
	for _, f := range faces {
		r := f.Attributes.Face
		side := int(float64(r.Right-r.Left) / facePart)
		left, top := int(r.Left+r.Right)/2-side/2, int(r.Top+r.Bottom)/2-side/2
		cut := image.NewRGBA(image.Rect(0, 0, side, side))
		for y := range side {
			for x := range side {
				at := 3 * (min(max(top+y, 0), im.Height-1)*im.Width + min(max(left+x, 0), im.Width-1))
				cut.SetRGBA(x, y, colour.RGBA{im.Pix[at], im.Pix[at+1], im.Pix[at+2], 255})
			}
		}
		list = append(list, cut)
	}
	return list, nil
}

// compose puts pieces, from one on, into the cells of a grey picture, so that their face areas have
// this side.
func compose(pieces []*image.RGBA, first, side int) (picture, error) {
	im := image.NewRGBA(image.Rect(0, 0, sceneWidth, sceneHeight))
	draw.Draw(im, im.Rect, image.NewUniform(colour.RGBA{110, 115, 120, 255}), image.Point{}, draw.Src)
	addGrain(im)
	var p picture
	whole := int(float64(side) / facePart)
	for i := range sceneColumns * sceneRows {
		x := (2*(i%sceneColumns) + 1) * sceneWidth / (2 * sceneColumns)
		y := (2*(i/sceneColumns) + 1) * sceneHeight / (2 * sceneRows)
		piece := pieces[(first+i)%len(pieces)]
		draw.CatmullRom.Scale(im, image.Rect(x-whole/2, y-whole/2, x+whole/2, y+whole/2), piece, piece.Rect, draw.Src, nil)
		p.faces = append(p.faces, image.Rect(x-side/2, y-side/2, x+side/2, y+side/2))
	}
	p.count = len(p.faces)
	var out bytes.Buffer
	err := jpeg.Encode(&out, im, &jpeg.Options{Quality: 92})
	p.data = out.Bytes()
	return p, err
}
