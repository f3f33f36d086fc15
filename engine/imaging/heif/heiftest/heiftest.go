// Package heiftest builds HEIC files for tests, box by box, around pictures that an encoder has
// coded: in the shapes that phones and cameras write, and in those of bombs.
package heiftest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// Item is an item of a file. Its id is its place in the file's list, from 1.
type Item struct {
	Kind       string // of infe: hvc1, grid, Exif
	Properties [][]byte
	References []Reference
	Data       []byte
	// Extents is how often its location lists its data, if not once.
	Extents int
	// DataOf is the id of the item whose data it has, if not 0.
	DataOf int
}

// Reference is a box of iref: what the item is to others.
type Reference struct {
	Kind string // dimg, thmb, auxl
	To   []int
}

// File is a HEIC file whose first item is the primary one.
type File struct {
	Brand string // heic if empty
	Items []Item
	Twice string // kind of a box of meta that comes twice
}

// Box returns a box of the kind.
func Box(kind string, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(append(u32(8+len(body)), kind...), body...)
}

func fullBox(kind string, parts ...[]byte) []byte {
	return Box(kind, u32(0), bytes.Join(parts, nil))
}

func u16(v int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(v)) }
func u32(v int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// Size returns the property of an item's size in pixels.
func Size(width, height int) []byte { return fullBox("ispe", u32(width), u32(height)) }

// Auxiliary returns the property of an item that is the named auxiliary of another.
func Auxiliary(name string) []byte { return fullBox("auxC", append([]byte(name), 0)) }

// Coded returns the coded picture of a file that has one item, with its configuration, its size and
// its kinds of samples.
func Coded(t testing.TB, file []byte) Item {
	t.Helper()
	it := Item{Kind: "hvc1", Data: file[find(t, file, "mdat"):]}
	for _, kind := range []string{"hvcC", "ispe", "pixi"} {
		at := find(t, file, kind)
		size := binary.BigEndian.Uint32(file[at-8:])
		it.Properties = append(it.Properties, file[at-8:at-8+int(size)])
	}
	return it
}

// arrays is where hvcC counts its arrays of parameter sets (ISO/IEC 14496-15, 8.3.3).
const arrays = 8 + 22

// Parameters returns the parameter sets of a coded picture's configuration as units of its data.
func Parameters(it Item) []byte {
	var out []byte
	rest := it.Properties[0][arrays+1:]
	for range it.Properties[0][arrays] {
		n := binary.BigEndian.Uint16(rest[1:])
		rest = rest[3:]
		for range n {
			size := 2 + int(binary.BigEndian.Uint16(rest))
			out = append(append(out, u32(size-2)...), rest[2:size]...)
			rest = rest[size:]
		}
	}
	return out
}

// find returns where the text ends.
func find(t testing.TB, in []byte, text string) int {
	t.Helper()
	at := bytes.Index(in, []byte(text))
	if at < 0 {
		t.Fatalf("the file has no %s", text)
	}
	return at + len(text)
}

// Grid returns a picture of the given size that is composed of the parts, row by row.
func Grid(columns, width, height int, parts ...int) Item {
	rows := len(parts) / columns
	return Item{
		Kind: "grid", Properties: [][]byte{Size(width, height)}, References: []Reference{{"dimg", parts}},
		Data: bytes.Join([][]byte{{0, 0, byte(rows - 1), byte(columns - 1)}, u16(width), u16(height)}, nil),
	}
}

// As returns the item as another one's thumbnail (thmb) or auxiliary (auxl), with more properties.
func (it Item) As(kind string, to int, properties ...[]byte) Item {
	it.References = []Reference{{kind, []int{to}}}
	it.Properties = slices.Concat(it.Properties, properties)
	return it
}

// Bytes returns the file.
func (f File) Bytes() []byte {
	brand := "heic"
	if f.Brand != "" {
		brand = f.Brand
	}
	head := Box("ftyp", []byte(brand), u32(0), []byte("mif1heic"))
	mdat := len(head) + len(f.meta(0)) + 8
	out := append(head, f.meta(mdat)...)
	var data [][]byte
	for _, it := range f.Items {
		data = append(data, it.Data)
	}
	return append(out, Box("mdat", data...)...)
}

// meta returns the meta box of a file whose data begin at an offset.
func (f File) meta(at int) []byte {
	n := len(f.Items)
	infos, locations, associations := [][]byte{u16(n)}, [][]byte{{0x44, 0}, u16(n)}, [][]byte{u32(n)}
	var references, properties [][]byte
	offsets := make([]int, n)
	for i, it := range f.Items {
		id := u16(i + 1)
		offsets[i], at = at, at+len(it.Data)
		infos = append(infos, Box("infe", []byte{2, 0, 0, 0}, id, u16(0), []byte(it.Kind), []byte{0}))
		for _, r := range it.References {
			to := [][]byte{id, u16(len(r.To))}
			for _, other := range r.To {
				to = append(to, u16(other))
			}
			references = append(references, Box(r.Kind, to...))
		}
		associations = append(associations, id, []byte{byte(len(it.Properties))})
		for _, p := range it.Properties {
			properties = append(properties, p)
			associations = append(associations, u16(len(properties)))
		}
		from, data := i, it.Data
		if it.DataOf > 0 {
			from, data = it.DataOf-1, f.Items[it.DataOf-1].Data
		}
		locations = append(locations, id, u16(0), u16(max(1, it.Extents)))
		for range max(1, it.Extents) {
			locations = append(locations, u32(offsets[from]), u32(len(data)))
		}
	}
	boxes := [][]byte{
		fullBox("hdlr", u32(0), []byte("pict"), make([]byte, 13)), fullBox("pitm", u16(1)),
		fullBox("iinf", infos...), fullBox("iref", references...),
		Box("iprp", Box("ipco", properties...), Box("ipma", []byte{0, 0, 0, 1}, bytes.Join(associations, nil))),
		fullBox("iloc", locations...),
	}
	for _, box := range boxes {
		if f.Twice == string(box[4:8]) {
			boxes = append(boxes, box)
		}
	}
	return fullBox("meta", boxes...)
}

// Auxiliaries are the names of what an iPhone's portrait has beside its picture: mattes, gain map and
// depth.
var Auxiliaries = []string{
	"urn:com:apple:photo:2018:aux:portraiteffectsmatte", "urn:com:apple:photo:2019:aux:semanticskinmatte",
	"urn:com:apple:photo:2019:aux:semantichairmatte", "urn:com:apple:photo:2019:aux:semanticteethmatte",
	"urn:com:apple:photo:2020:aux:semanticglassesmatte", "urn:com:apple:photo:2020:aux:hdrgainmap",
	"urn:mpeg:hevc:2015:auxid:2",
}

// Shapes returns files in the shapes that phones and cameras write, by name. Each shows the picture
// of tile, or the grids that picture twice, side by side. What is not shown is larger. Both tile and
// larger are files with one item; tile has side × side pixels.
func Shapes(t testing.TB, tile []byte, side int, larger []byte) map[string]File {
	t.Helper()
	part, aside := Coded(t, tile), Coded(t, larger)
	grid := []Item{Grid(2, 2*side, side, 2, 3), part, part}
	portrait := append(slices.Clone(grid), part.As("thmb", 1))
	for _, name := range Auxiliaries {
		portrait = append(portrait, aside.As("auxl", 1, Auxiliary(name)))
	}
	portrait = append(portrait, Item{Kind: "Exif", Data: make([]byte, 64)})

	announced := part.As("thmb", 1)
	announced.Properties[1] = Size(side+8, side)
	inBand, own := part.As("thmb", 1), part
	inBand.Data = slices.Concat(Parameters(aside), part.Data)
	own.Data = slices.Concat(Parameters(part), part.Data)
	unset := inBand
	unset.Properties = slices.Clone(unset.Properties)
	unset.Properties[0] = Box("hvcC", part.Properties[0][8:arrays], []byte{0})
	return map[string]File{
		"grid":                       {Items: grid},
		"portrait":                   {Items: portrait},
		"burst":                      {Items: []Item{part, aside, aside, aside}},
		"thumbnail announced larger": {Items: []Item{part, announced}},
		"thumbnail coded larger":     {Items: []Item{part, inBand}},
		"thumbnail not configured":   {Items: []Item{part, unset}},
		"parameters in the data":     {Items: []Item{own}},
		"brand mif1":                 {Brand: "mif1", Items: []Item{part}},
		"brand heis":                 {Brand: "heis", Items: []Item{part}},
	}
}
