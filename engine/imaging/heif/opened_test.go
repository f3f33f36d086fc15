package heif_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"facet/engine/imaging/heif"
	"facet/engine/imaging/heif/heiftest"
	"facet/internal/must"
)

// side is that of plain.heic and grey.heic.
const side = 64

func shapes(t testing.TB) map[string]heiftest.File {
	t.Helper()
	return heiftest.Shapes(t, fixture(t, "plain.heic"), side, fixture(t, "slices.heic"))
}

func TestShapesOfCamerasAreRead(t *testing.T) {
	t.Parallel()
	want, err := decoded(t, heiftest.File{Items: []heiftest.Item{heiftest.Coded(t, fixture(t, "plain.heic"))}}.Bytes())
	must.Do(t, err)
	for name, file := range shapes(t) {
		data := file.Bytes()
		h, err := heif.ReadHead(data)
		if err != nil || h.Pixels != int64(h.Width*h.Height) {
			t.Errorf("%s: %d pixels are decoded of %d × %d, error %v", name, h.Pixels, h.Width, h.Height, err)
			continue
		}
		im, err := decoded(t, data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, y := range want.Y { // a grid's tiles are turned to RGB and back
			for x := i % want.YStride; x < h.Width; x += side {
				if got := im.Y[i/want.YStride*im.YStride+x]; max(got, y)-min(got, y) > 2 {
					t.Fatalf("%s: sample %d of row %d is %d, not %d", name, x, i/want.YStride, got, y)
				}
			}
		}
	}
}

// A grid is converted to 8 bits by the decoder, and a single picture of 4:4:4 is not.
func TestTilesOfTenBitsShowSamePicture(t *testing.T) {
	t.Parallel()
	part := heiftest.Coded(t, fixture(t, "444-10.heic"))
	one, err := decoded(t, heiftest.File{Items: []heiftest.Item{part}}.Bytes())
	must.Do(t, err)
	grid, err := decoded(t, heiftest.File{Items: []heiftest.Item{heiftest.Grid(1, side, side, 2), part}}.Bytes())
	must.Do(t, err)
	if d := apart(one, grid); d > 2 {
		t.Errorf("the mean difference is %.1f", d)
	}
}

// damaged returns the file with zeros in the coded data of an item.
func damaged(file heiftest.File, item int) heiftest.File {
	file.Items = slices.Clone(file.Items)
	it := &file.Items[item]
	it.Data = bytes.Clone(it.Data)
	clear(it.Data[len(it.Data)/2:])
	return file
}

// The decoder notices damage to the coded data of the items that it opens. The gate checks
// these items and no others.
func TestGateChecksWhatDecoderOpens(t *testing.T) {
	t.Parallel()
	for name, file := range shapes(t) {
		whole := file.Bytes()
		h, err := heif.ReadHead(whole)
		must.Do(t, err)
		for i, it := range file.Items {
			if it.Kind != "hvc1" {
				continue
			}
			_, err := decodedAs(t, damaged(file, i).Bytes(), h)
			opened := err != nil
			other := file
			other.Items = slices.Clone(file.Items)
			other.Items[i].Properties = slices.Clone(it.Properties)
			other.Items[i].Properties[1] = heiftest.Size(8, 8)
			_, err = heif.ReadHead(other.Bytes())
			if checked := err != nil; checked != opened {
				t.Errorf("%s: the decoder opens item %d: %v; the gate checks it: %v", name, i+1, opened, checked)
			}
		}
	}
}

// The decoder opens the transparency of the picture and of its tiles, and then drops it.
func TestTransparencyIsOpenedAndRefused(t *testing.T) {
	t.Parallel()
	grid := shapes(t)["grid"]
	alpha := heiftest.Coded(t, fixture(t, "grey.heic"))
	for _, of := range []int{1, 2} {
		for _, name := range []string{"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1", "urn:mpeg:avc:2015:auxid:1"} {
			with := func(name string) heiftest.File {
				return heiftest.File{Items: append(slices.Clone(grid.Items), alpha.As("auxl", of, heiftest.Auxiliary(name)))}
			}
			file := with(name)
			h, err := heif.ReadHead(with(strings.Repeat("x", len(name))).Bytes()) // the gate lets it pass
			must.Do(t, err)
			if _, err := decodedAs(t, file.Bytes(), h); err != nil {
				t.Errorf("%s of item %d: %v", name, of, err)
			}
			if _, err := decodedAs(t, damaged(file, 3).Bytes(), h); err == nil {
				t.Errorf("%s of item %d: the decoder does not open it", name, of)
			}
			if _, err := heif.ReadHead(file.Bytes()); err == nil || !strings.Contains(err.Error(), "transparent") {
				t.Errorf("%s of item %d: got %v", name, of, err)
			}
		}
	}
}

func TestBombsAreRefusedByHead(t *testing.T) {
	t.Parallel()
	part, larger := heiftest.Coded(t, fixture(t, "plain.heic")), heiftest.Coded(t, fixture(t, "slices.heic"))
	grid := func(parts ...int) heiftest.Item {
		return heiftest.Grid(len(parts), len(parts)*side, side, parts...)
	}
	f := func(want string, items ...heiftest.Item) {
		t.Helper()
		if _, err := heif.ReadHead(heiftest.File{Items: items}.Bytes()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	f("more than 8192 parts", grid(slices.Repeat([]int{2}, 10_000)...), part)
	f("it uses the same tile too often", grid(2, 2, 2), part)
	f("it is a tile of itself", grid(2, 1), part)
	f("composed of other pictures", grid(2, 3), part, grid(4, 4), part)
	f("composed of other pictures", grid(2, 2), heiftest.Item{Kind: "iden", Properties: part.Properties})
	f("a tile is missing", grid(2, 9), part)
	f("not coded by HEVC", grid(2, 3), part, heiftest.Item{Kind: "Exif"})

	inBand := part
	inBand.Data = slices.Concat(heiftest.Parameters(larger), part.Data)
	f("its boxes and its data give different sizes", inBand)
	f("its boxes and its data give different sizes", grid(2, 3), part, inBand)

	exif := heiftest.Item{Kind: "Exif", Data: make([]byte, 1<<16)}
	shared := heiftest.Item{Kind: "Exif", DataOf: 2}
	f("share the same bytes", part, exif, shared, shared)
	exif.Extents = 3
	f("share the same bytes", part, exif)
	f("share the same bytes", grid(2, 2), heiftest.Item{Kind: "hvc1", Properties: part.Properties, Data: part.Data, Extents: 100})
}

// The gate would check one primary picture, and the decoder open another.
func TestRepeatedBoxesAreRefused(t *testing.T) {
	t.Parallel()
	file := shapes(t)["grid"]
	for _, file.Twice = range []string{"pitm", "iinf", "iref", "iprp", "iloc"} {
		if _, err := heif.ReadHead(file.Bytes()); err == nil {
			t.Errorf("a file with two boxes %s is read", file.Twice)
		}
	}
}

// Extents of no bytes cost memory all the same.
func TestEmptyExtentsAreBounded(t *testing.T) {
	t.Parallel()
	part := heiftest.Coded(t, fixture(t, "plain.heic"))
	items := []heiftest.Item{part}
	for range 9 {
		items = append(items, heiftest.Item{Kind: "Exif", Extents: 1000})
	}
	if _, err := heif.ReadHead(heiftest.File{Items: items}.Bytes()); err == nil {
		t.Error("9000 extents are read")
	}
}
