package portrait

import (
	"bytes"
	"errors"
	"flag"
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/image/draw"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/internal/must"
)

var (
	scenePersons = flag.String("scenes.persons", "", "a folder with a folder of photos for each person, instead of the sample portraits")
	scenePack    = flag.String("scenes.pack", "", "the folder of a model pack, instead of the tests' pack")
	sceneCount   = flag.Int("scenes.count", 1, "how many pairs of persons each scene shows")
)

// unit is the side of the main face of a scene, in pixels.
const unit = 120

// portraitOf is a photo with one face that counts.
type portraitOf struct {
	image    image.Image
	area     engine.Rect
	template engine.Template
}

// spot is the place of a portrait in a scene, in units: the middle of the face and its side.
type spot struct{ x, y, side float64 }

// scene places two or three persons on an image of some width; the first one is drawn last.
type scene struct {
	name  string
	width float64
	spots []spot
	// main is the person who may be taken, or none.
	main int
	// vague is 0, or how many pixels the side of the first person's face has: the engine may not
	// find a face so vague, or not be sure of it.
	vague int
}

// blurred is a scene on which the engine often finds only the person who isn't meant.
const blurred = "larger person at the side, the one meant blurred"

// scenes returns the scenes: alike persons, of whom none may be taken, and one person with somebody
// else near.
func scenes() []scene {
	const y, high = 1.3, 1.2
	var list []scene
	for _, r := range []float64{.85, 1} {
		list = append(list,
			scene{"two alike", 4.4, []spot{{1.1, y, 1}, {3.3, y, r}}, none, 0},
			scene{"two alike, one nearer the middle", 5.4, []spot{{2.1, y, 1}, {4.3, y, r}}, none, 0},
			scene{"three alike", 6.6, []spot{{3.3, y, 1}, {1.1, y, r}, {5.5, y, r}}, none, 0},
			scene{"other one cut by the border", 3.4, []spot{{1.7, y, 1}, {3.2, high, r}}, 0, 0},
		)
	}
	for _, r := range []float64{.4, .6, .75} {
		list = append(list,
			scene{"smaller person behind", 4, []spot{{2, y, 1}, {3.3, high, r}}, 0, 0},
			scene{"smaller person behind, off the middle", 5, []spot{{1.9, y, 1}, {3.3, high, r}}, 0, 0},
			scene{"smaller person in the middle", 5, []spot{{1.3, y, 1}, {2.6, high, r}}, 0, 0},
		)
	}
	for _, r := range []float64{1.2, 2} {
		list = append(list,
			scene{"larger person at the side", 5, []spot{{2.5, y, 1}, {2.5 + .6 + r*.6, y, r}}, 0, 0},
			scene{"larger person at the side, cut", 4, []spot{{2, y, 1}, {4 - .2*r, y, r}}, 0, 0})
		for _, vague := range []int{10, 20} {
			list = append(list, scene{blurred, 6.4, []spot{{3.2, y, 1}, {3.4 + r, y, r}}, 0, vague})
		}
	}
	return list
}

// outcome counts what became of the images of a scene. Only one face counts on those that are
// single: Refuse takes it, too. It is another one's than main's on those that are other.
type outcome struct{ images, single, other, taken, refused, wrong int }

// TestDominantTakesNobodyElse composes scenes of two or three persons and extracts their faces: the
// template that is taken must be that of the person who is meant, and none may be taken of alike ones.
//
//	go test ./engine/portrait -run NobodyElse -v -scenes.persons DIR -scenes.count 60
func TestDominantTakesNobodyElse(t *testing.T) {
	t.Parallel()
	e := enginetest.At(t, *scenePack)
	people := portraits(t, e)
	r := rand.New(rand.NewPCG(1, 36))
	counts := map[string]*outcome{}
	var names []string
	for _, s := range scenes() {
		if counts[s.name] == nil {
			counts[s.name] = new(outcome)
			names = append(names, s.name)
		}
		for range *sceneCount {
			who := r.Perm(len(people))[:len(s.spots)]
			play(t, e, s, people, who, counts[s.name])
		}
	}
	for _, name := range names {
		o := counts[name]
		t.Logf("%-48s %4d images: %3d single (%d another one), %3d taken (%d another one), %3d refused",
			name, o.images, o.single, o.other, o.taken, o.wrong, o.refused)
		if o.wrong > 0 || o.other > 0 && name != blurred {
			t.Errorf("%s: %d of %d images enrol somebody else", name, o.wrong+o.other, o.images)
		}
	}
	if o := counts["smaller person behind"]; o.taken+o.single < o.images*9/10 {
		t.Errorf("with a smaller person behind, %d of %d are taken, want nine of ten", o.taken, o.images)
	}
}

// play composes a scene of these people and counts its outcome.
func play(t *testing.T, e *engine.Engine, s scene, people []portraitOf, who []int, o *outcome) {
	t.Helper()
	canvas := image.NewRGBA(image.Rect(0, 0, int(s.width*unit), 3*unit))
	draw.Draw(canvas, canvas.Rect, image.NewUniform(colour.Gray{Y: 128}), image.Point{}, draw.Src)
	for i, at := range slices.Backward(s.spots) {
		p := people[who[i]]
		if i == 0 && s.vague > 0 {
			p = p.blurred(s.vague)
		}
		p.paint(canvas, at)
	}
	var file bytes.Buffer
	must.Do(t, jpeg.Encode(&file, canvas, &jpeg.Options{Quality: 95}))
	faces, err := e.ExtractLarge(t.Context(), file.Bytes(), SoughtSide)
	must.Do(t, err)
	o.images++
	if len(faces) == 0 {
		o.refused++
		return
	}
	if single, err := Refuse.Take(file.Bytes(), faces); err == nil {
		o.single++
		if s.shows(e, people, who, single) != s.main {
			o.other++
		}
		return
	}
	taken, err := Dominant.Take(file.Bytes(), faces)
	if errors.Is(err, ErrSeveral) {
		o.refused++
		return
	}
	must.Do(t, err)
	o.taken++
	if s.shows(e, people, who, taken) != s.main {
		o.wrong++
		for _, f := range faces {
			t.Logf("%s, wrong: %+v", s.name, f.Attributes)
		}
	}
}

// shows returns which of the scene's persons a face shows.
func (s scene) shows(e *engine.Engine, people []portraitOf, who []int, face Taken) int {
	like := func(i int) int { return e.Compare(face.Template, people[who[i]].template) }
	best := 0
	for i := range s.spots {
		if like(i) > like(best) {
			best = i
		}
	}
	return best
}

// paint draws the head and shoulders of a portrait at its place.
func (p portraitOf) paint(canvas *image.RGBA, at spot) {
	side := float64(p.area.Right - p.area.Left)
	x, y := float64(p.area.Left+p.area.Right)/2, float64(p.area.Top+p.area.Bottom)/2
	from := image.Rect(int(x-side), int(y-1.1*side), int(x+side), int(y+1.3*side)).Intersect(p.image.Bounds())
	scale := at.side * unit / side
	place := func(v, middle, at float64) int { return int(at*unit + (v-middle)*scale) }
	to := image.Rect(place(float64(from.Min.X), x, at.x), place(float64(from.Min.Y), y, at.y),
		place(float64(from.Max.X), x, at.x), place(float64(from.Max.Y), y, at.y))
	draw.CatmullRom.Scale(canvas, to, p.image, from, draw.Src, nil)
}

// blurred returns p with so few pixels that the side of its face has side of them.
func (p portraitOf) blurred(side int) portraitOf {
	share := float32(side) / (p.area.Right - p.area.Left)
	b := p.image.Bounds()
	small := image.NewRGBA(image.Rect(0, 0, int(float32(b.Dx())*share), int(float32(b.Dy())*share)))
	draw.CatmullRom.Scale(small, small.Rect, p.image, b, draw.Src, nil)
	same := image.NewRGBA(b)
	draw.BiLinear.Scale(same, b, small, small.Rect, draw.Src, nil)
	p.image = same
	return p
}

// portraits returns photos with one face, each of another person.
func portraits(t *testing.T, e *engine.Engine) []portraitOf {
	t.Helper()
	var files [][]byte
	if *scenePersons == "" {
		for _, name := range append([]string{"face_recognition/obama.jpg"}, enginetest.Others...) {
			files = append(files, enginetest.Photo(t, name))
		}
	} else {
		all, err := filepath.Glob(filepath.Join(*scenePersons, "*", "*_0001.jpg"))
		must.Do(t, err)
		rand.New(rand.NewPCG(36, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, name := range all[:min(len(all), 4**sceneCount)] {
			data, err := os.ReadFile(name)
			must.Do(t, err)
			files = append(files, data)
		}
	}
	var people []portraitOf
	for _, data := range files {
		faces, err := e.ExtractLarge(t.Context(), data, 0)
		must.Do(t, err)
		if len(faces) != 1 || faces[0].Attributes.Quality < .45 {
			continue
		}
		people = append(people, portraitOf{enginetest.RGBA(t, data), faces[0].Attributes.Face, faces[0].Template})
	}
	return people
}

// Nobody on the sample photos of groups is clearly the one meant.
func TestDominantTakesNobodyOfGroups(t *testing.T) {
	t.Parallel()
	e := enginetest.Shared(t)
	for name := range enginetest.Groups {
		file := enginetest.Photo(t, name)
		faces, err := e.ExtractLarge(t.Context(), file, SoughtSide)
		must.Do(t, err)
		if taken, err := Dominant.Take(file, faces); !errors.Is(err, ErrSeveral) {
			t.Errorf("%s: took %+v, %v", name, taken.Attributes.Face, err)
		}
	}
}
