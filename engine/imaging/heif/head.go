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
	// Pixels is how many pixels the decoder decodes for it: a tile counts as often as it is used, and
	// with its overlaps. Other pictures of the file don't count.
	Pixels int64

	// end is the end of the last box that the picture needs.
	end int
	// blocks are the numbers of coding tree blocks of the coded pictures.
	blocks []int64
	// bits is how many bits a sample of the picture has in the decoder.
	bits int64
}

// item is a picture in the file, coded or composed of others.
type item struct {
	kind       string
	properties []int // indices from 1
	parts      []uint32
	beside     []uint32 // the pictures that it is auxiliary to, for instance as transparency
	data       [][]byte
	bytes      int64    // of data
	used       int      // how often the decoder opens it
	coded      sequence // of a coded picture that the decoder opens
	unread     bool     // has an essential property of a kind that is not read
}

// property is one of ipco: a size (ispe), a crop (clap), a decoder's configuration with the coded
// size (hvcC), or another.
type property struct {
	kind          string
	err           error // why it can't be read, which counts if the decoder opens its item
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
	// extents and bytes are how many pieces of the file all items have, and how many bytes these have.
	extents int
	bytes   int64
}

// brandAt is where a file's brand begins.
const brandAt = 8

// Is recognises a file by its brand.
func Is(data []byte) bool {
	if len(data) < brandAt+4 || string(data[4:brandAt]) != "ftyp" {
		return false
	}
	switch string(data[brandAt : brandAt+4]) {
	case "heic", "heix", "heim", "heis", "mif1":
		return true
	}
	return false
}

// ReadHead reads the boxes up to the last one that an item needs, and ignores later ones. It
// refuses files that would cost the decoder more time than the picture's size suggests: pictures
// composed of composed pictures, video instead of a picture, coded sizes other than the announced
// ones. It checks the pictures that the decoder opens for the primary one: itself, or the tiles of
// its grid. What else the file has (thumbnails, depth, mattes, gain maps, other photos) is copied by
// the decoder and not decoded, so only the number of its bytes counts.
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
	seen := map[string]bool{}
	err := boxes(r.b, func(kind string, body []byte) error {
		if err := once(seen, kind); err != nil {
			return err
		}
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
			locations = body
		case "iprp":
			return boxes(body, func(kind string, body []byte) error {
				if err := once(seen, kind); err != nil {
					return err
				}
				switch kind {
				case "ipco":
					return boxes(body, m.readProperty)
				case "ipma":
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

// once returns an error for the second box of a kind of which readers take either.
func once(seen map[string]bool, kind string) error {
	switch kind {
	case "pitm", "iinf", "iref", "idat", "iloc", "iprp", "ipco", "ipma":
		if seen[kind] {
			return errBroken
		}
		seen[kind] = true
	}
	return nil
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
			return fmt.Errorf("it has more than %d parts", referencesMax)
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
			p.err = errBroken
		}
	case "clap":
		p.across, p.down, p.err = readCrop(body)
	case "irot":
		r := reader{b: body}
		p.sideways = r.uint(1)&1 != 0
	case "auxC":
		_, _, r := full(body)
		name, _, _ := bytes.Cut(r.b, []byte{0})
		p.alpha = slices.Contains(alphaNames, string(name))
	case "hvcC":
		p.coded, p.err = readSequence(body)
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
			m.extents++
			if r.bad || at > uint64(len(from)) || size > uint64(len(from))-at || m.extents > extentsMax {
				return errBroken
			}
			if m.bytes += int64(size); m.bytes > m.readMax() {
				return errors.New("its items share the same bytes")
			}
			it.data = append(it.data, from[at:at+size])
			it.bytes += int64(size)
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

// readMax is the most bytes that the decoder copies of all items together, and decodes for the
// picture: two items may share bytes.
func (m *meta) readMax() int64 { return 2 * int64(len(m.file)) }

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
	return found[0], found[0].err
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
		case p.err != nil:
			return Head{}, p.err
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

// alphaNames are the names of transparency that the decoder knows (ISO/IEC 23008-12, 6.6.2.1.1, and
// the older ones of HEVC and AVC).
var alphaNames = []string{
	"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1", "urn:mpeg:avc:2015:auxid:1",
}

// transparent reports whether a picture that the decoder opens is transparent. The decoder opens its
// transparency too, but drops it and would show hidden colours.
func (m *meta) transparent() bool {
	opened := func(id uint32) bool { return m.items[id] != nil && m.items[id].used > 0 }
	alpha := func(index int) bool { return index > 0 && m.properties[index-1].alpha }
	for _, it := range m.items {
		if slices.ContainsFunc(it.beside, opened) && slices.ContainsFunc(it.properties, alpha) {
			return true
		}
	}
	return false
}

// head checks the pictures that the decoder opens, and sums up the pixels to decode.
func (m *meta) head() (Head, error) {
	primary := m.items[m.primary]
	if primary == nil || primary.kind != kindCoded && primary.kind != kindGrid {
		return Head{}, errors.New("its picture is not coded by HEVC")
	}
	h, err := m.size(primary)
	if err != nil {
		return Head{}, err
	}
	opened := []uint32{m.primary}
	if primary.kind == kindGrid {
		opened = primary.parts
		primary.used++
	}
	read := int64(0)
	for _, id := range opened {
		it := m.items[id]
		if err := m.open(it, primary); err != nil {
			return Head{}, err
		}
		if read += it.bytes; read > m.readMax() {
			return Head{}, errors.New("it uses the same tile too often")
		}
		h.Pixels += it.coded.width * it.coded.height
		h.blocks = append(h.blocks, it.coded.blocks)
	}
	if m.transparent() {
		return Head{}, errors.New("it is transparent, which is not read: save it without transparency")
	}
	h.bits = primary.coded.bits
	if primary.kind == kindGrid {
		h.bits = 8 // libheif composes it in RGB and converts that
		err = m.checkGrid(primary)
	}
	return h, err
}

// open checks a coded picture that the decoder opens for the primary one, when it does so first.
func (m *meta) open(it, primary *item) error {
	switch {
	case it == nil:
		return errors.New("a tile is missing")
	case it == primary && it.kind == kindGrid:
		return errors.New("it is a tile of itself")
	case it.kind == kindGrid || it.kind == "iovl" || it.kind == "iden":
		return errors.New("its tiles are composed of other pictures, which is not read: save it as JPEG")
	case it.kind != kindCoded:
		return errors.New("a tile is not coded by HEVC")
	}
	if it.used++; it.used > 1 {
		return nil
	}
	configuration, err := m.find(it, "hvcC")
	if err != nil {
		return err
	}
	it.coded = configuration.coded
	announced, err := m.find(it, "ispe")
	if err != nil {
		return err
	}
	// The decoder returns the coded size.
	if announced.width != it.coded.shownWidth || announced.height != it.coded.shownHeight {
		return fmt.Errorf("it announces %d × %d pixels, and %d × %d are coded",
			announced.width, announced.height, it.coded.shownWidth, it.coded.shownHeight)
	}
	return onePicture(it.data, it.coded)
}
