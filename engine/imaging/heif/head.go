package heif

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Head describes the primary picture of a file, by the boxes of the file.
type Head struct {
	// Width and Height are those of the cropped and turned picture.
	Width, Height int
	// Pixels is the most pixels that a decoder may decode for it: tiles with their overlaps,
	// transparency, and other pictures of the file.
	Pixels int64

	// end is the end of the last box that the picture needs.
	end int
	// blocks are the numbers of coding tree blocks of the coded pictures.
	blocks []int64
}

// item is a picture in the file, coded or composed of others.
type item struct {
	kind       string
	properties []int // indices from 1
	parts      []uint32
	beside     []uint32 // the pictures that it is auxiliary to, for instance as transparency
	data       [][]byte
	used       int64 // how many composed pictures contain it
	unread     bool  // has an essential property of a kind that is not read
}

// property is one of ipco: a size (ispe), a crop (clap), a decoder's configuration with the coded
// size (hvcC), or another.
type property struct {
	kind          string
	width, height int64
	across, down  crop     // of clap
	sideways      bool     // of irot
	alpha         bool     // of auxC: the item is transparency
	coded         sequence // of hvcC
}

// meta is the content of a meta box.
type meta struct {
	file       []byte
	idat       []byte
	primary    uint32
	items      map[uint32]*item
	properties []property
	// needed is the end of the last byte of an item in the file.
	needed int
}

// Is recognises a file by its brand.
func Is(data []byte) bool {
	if len(data) < 12 || string(data[4:8]) != "ftyp" {
		return false
	}
	switch string(data[8:12]) {
	case "heic", "heix", "heim", "heis", "mif1":
		return true
	}
	return false
}

// ReadHead reads the boxes up to the last one that the picture needs, and ignores later ones. It
// refuses files that would cost a decoder more time than the picture's size suggests: pictures
// composed of composed pictures, video instead of a picture, coded sizes other than the announced
// ones.
func ReadHead(data []byte) (Head, error) {
	m := &meta{file: data, items: make(map[uint32]*item)}
	found := false
	r := reader{b: data}
	at := 0
	for n := 0; !found || at < m.needed; n++ {
		if len(r.b) == 0 && !found {
			return Head{}, errors.New("it has no picture")
		}
		kind, body := r.box()
		if r.bad || n == boxesMax || kind == kindMeta && found {
			return Head{}, errBroken
		}
		at = len(data) - len(r.b)
		if kind == kindMeta {
			found = true
			if err := m.read(body); err != nil {
				return Head{}, err
			}
		}
	}
	h, err := m.head()
	h.end = at
	return h, err
}

func (m *meta) read(body []byte) error {
	_, _, r := full(body)
	var locations, associations []byte
	err := boxes(r.b, func(kind string, body []byte) error {
		switch kind {
		case "pitm":
			version, _, r := full(body)
			m.primary = uint32(r.uint(wide(version, 1)))
		case "iinf":
			return m.readItems(body)
		case "iref":
			return m.readReferences(body)
		case "idat":
			m.idat = body
		case "iloc":
			if locations != nil {
				return errBroken
			}
			locations = body
		case "iprp":
			return boxes(body, func(kind string, body []byte) error {
				switch kind {
				case "ipco":
					return boxes(body, m.readProperty)
				case "ipma":
					if associations != nil {
						return errBroken
					}
					associations = body
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	// These two refer to items and properties that may come after them.
	if err := m.readAssociations(associations); err != nil {
		return err
	}
	return m.readLocations(locations)
}

func (m *meta) item(id uint32) *item {
	if m.items[id] == nil {
		m.items[id] = new(item)
	}
	return m.items[id]
}

func (m *meta) readItems(body []byte) error {
	version, _, r := full(body)
	r.uint(wide(version, 1)) // their number
	return boxes(r.b, func(kind string, body []byte) error {
		if kind != "infe" {
			return nil
		}
		version, _, r := full(body)
		if version < 2 {
			return errBroken
		}
		it := m.item(uint32(r.uint(wide(version, 3))))
		r.uint(2) // protection
		if it.kind != "" {
			return errBroken
		}
		it.kind = string(r.take(4))
		if r.bad || len(m.items) > itemsMax {
			return errBroken
		}
		return nil
	})
}

func (m *meta) readReferences(body []byte) error {
	version, _, r := full(body)
	size, total := wide(version, 1), 0
	return boxes(r.b, func(kind string, body []byte) error {
		if kind != "dimg" && kind != "auxl" {
			return nil
		}
		r := reader{b: body}
		from := m.item(uint32(r.uint(size)))
		list := &from.parts
		if kind == "auxl" {
			list = &from.beside
		}
		n := int(r.uint(2))
		if total += n; total > referencesMax {
			return errors.New("it has too many parts")
		}
		for range n {
			*list = append(*list, uint32(r.uint(size)))
		}
		if r.bad || len(m.items) > itemsMax {
			return errBroken
		}
		return nil
	})
}

func (m *meta) readProperty(kind string, body []byte) error {
	p := property{kind: kind}
	switch kind {
	case "ispe":
		_, _, r := full(body)
		p.width, p.height = int64(r.uint(4)), int64(r.uint(4))
		if r.bad {
			return errBroken
		}
	case "clap":
		var err error
		if p.across, p.down, err = readCrop(body); err != nil {
			return err
		}
	case "irot":
		r := reader{b: body}
		p.sideways = r.uint(1)&1 != 0
	case "auxC":
		_, _, r := full(body)
		name, _, _ := bytes.Cut(r.b, []byte{0})
		p.alpha = slices.Contains(alphaNames, string(name))
	case "hvcC":
		var err error
		if p.coded, err = readSequence(body); err != nil {
			return err
		}
	}
	m.properties = append(m.properties, p)
	if len(m.properties) > propertiesMax {
		return errBroken
	}
	return nil
}

func (m *meta) readAssociations(body []byte) error {
	version, flags, r := full(body)
	n := r.uint(4)
	if n > itemsMax {
		return errBroken
	}
	for range n {
		it := m.item(uint32(r.uint(wide(version, 1))))
		for range r.uint(1) {
			first := r.uint(1)
			index := int(first &^ essential)
			if flags&1 != 0 {
				index = index<<8 | int(r.uint(1))
			}
			if index > len(m.properties) {
				return errBroken
			}
			it.properties = append(it.properties, index)
			if first&essential != 0 && index > 0 && !slices.Contains(readProperties, m.properties[index-1].kind) {
				it.unread = true
			}
		}
	}
	if r.bad || len(m.items) > itemsMax {
		return errBroken
	}
	return nil
}

// readLocations finds the bytes of the items (ISO/IEC 14496-12, 8.11.3).
func (m *meta) readLocations(body []byte) error {
	version, _, r := full(body)
	sizes := r.uint(2)
	offsetSize, lengthSize := int(sizes>>12), int(sizes>>8&15)
	baseSize, indexSize := int(sizes>>4&15), int(sizes&15)
	if version == 0 {
		indexSize = 0
	}
	if max(offsetSize, lengthSize, baseSize, indexSize) > 8 {
		return errBroken
	}
	n := r.uint(wide(version, 2))
	for range min(n, itemsMax+1) {
		it := m.item(uint32(r.uint(wide(version, 2))))
		from, inFile := m.file, true
		if version > 0 && r.uint(2)&15 == 1 {
			from, inFile = m.idat, false
		}
		r.uint(2) // reference to another file
		base := r.uint(baseSize)
		for range r.uint(2) {
			r.uint(indexSize)
			at, size := base+r.uint(offsetSize), r.uint(lengthSize)
			if r.bad || at > uint64(len(from)) || size > uint64(len(from))-at || len(it.data) == referencesMax {
				return errBroken
			}
			if size == 0 { // to the end
				size = uint64(len(from)) - at
			}
			it.data = append(it.data, from[at:at+size])
			if inFile {
				m.needed = max(m.needed, int(at+size))
			}
		}
		if r.bad || len(m.items) > itemsMax {
			return errBroken
		}
	}
	return nil
}

// find returns the item's only property of a kind.
func (m *meta) find(it *item, kind string) (property, error) {
	var found []property
	for _, index := range it.properties {
		if index > 0 && m.properties[index-1].kind == kind {
			found = append(found, m.properties[index-1])
		}
	}
	if len(found) != 1 {
		return property{}, fmt.Errorf("a picture has %d boxes %s, not one", len(found), kind)
	}
	return found[0], nil
}

// size returns a picture's size after its properties are applied in their order (ISO/IEC 23008-12,
// 6.3).
func (m *meta) size(it *item) (Head, error) {
	if it.unread {
		return Head{}, errors.New("it has a property that is not read and must not be ignored: save it as JPEG")
	}
	at, err := m.find(it, "ispe")
	if err != nil {
		return Head{}, err
	}
	for _, index := range it.properties {
		if index == 0 {
			continue
		}
		switch p := m.properties[index-1]; {
		case p.kind == "clap":
			if !p.across.inside(at.width) || !p.down.inside(at.height) {
				return Head{}, errCrop
			}
			at.width, at.height = p.across.length, p.down.length
		case p.sideways:
			at.width, at.height = at.height, at.width
		}
	}
	return Head{Width: int(at.width), Height: int(at.height)}, nil
}

const (
	kindMeta  = "meta"
	kindCoded = "hvc1"
	kindGrid  = "grid"
)

// essential is the bit of a property without which its item must not be shown.
const essential = 0x80

// readProperties are the kinds of properties that the decoder follows, or that change
// no pixel.
var readProperties = []string{"ispe", "hvcC", "irot", "imir", "clap", "colr", "pixi", "pasp", "auxC", "clli", "mdcv"}

// alphaNames are the names of transparency (ISO/IEC 23008-12, 6.6.2.1.1, and the older one of
// HEVC).
var alphaNames = []string{"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"}

// transparent reports whether an item is the transparency of the primary picture. The decoder
// ignores transparency and would show hidden colours.
func (m *meta) transparent(it *item) bool {
	return slices.Contains(it.beside, m.primary) && slices.ContainsFunc(it.properties, func(index int) bool {
		return index > 0 && m.properties[index-1].alpha
	})
}

// head checks the items and sums up the pixels to decode.
func (m *meta) head() (Head, error) {
	primary := m.items[m.primary]
	if primary == nil || primary.kind != kindCoded && primary.kind != kindGrid {
		return Head{}, errors.New("its picture is not coded by HEVC")
	}
	h, err := m.size(primary)
	if err != nil {
		return Head{}, err
	}
	for _, it := range m.items {
		if m.transparent(it) {
			return Head{}, errors.New("it is transparent, which is not read: save it without transparency")
		}
		switch it.kind {
		case kindGrid, "iovl", "iden":
			for _, part := range it.parts {
				p := m.items[part]
				if p == nil || p.kind != kindCoded {
					return Head{}, errors.New("it is put together of pictures that are put together")
				}
				p.used++
			}
		}
	}
	read := int64(0)
	for _, it := range m.items {
		if it.kind != kindCoded {
			continue
		}
		coded, err := m.coded(it)
		if err != nil {
			return Head{}, err
		}
		for _, d := range it.data {
			read += int64(len(d)) * max(1, it.used)
		}
		h.Pixels += coded.width * coded.height * max(1, it.used)
		h.blocks = append(h.blocks, coded.blocks)
	}
	if read > 2*int64(len(m.file)) {
		return Head{}, errors.New("its parts lie upon each other")
	}
	if primary.kind == kindGrid {
		err = m.checkGrid(primary)
	}
	return h, err
}

// coded checks a coded picture. The decoder returns it in the coded size, which must be the
// announced one.
func (m *meta) coded(it *item) (sequence, error) {
	configuration, err := m.find(it, "hvcC")
	if err != nil {
		return sequence{}, err
	}
	s := configuration.coded
	announced, err := m.find(it, "ispe")
	if err != nil {
		return sequence{}, err
	}
	if announced.width != s.shownWidth || announced.height != s.shownHeight {
		return sequence{}, fmt.Errorf("it announces %d × %d pixels, and %d × %d are coded",
			announced.width, announced.height, s.shownWidth, s.shownHeight)
	}
	return s, onePicture(it.data)
}
