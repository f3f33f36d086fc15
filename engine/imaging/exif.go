package imaging

import (
	"bytes"

	"github.com/bep/imagemeta"
)

const exifTagsMax = 1000

// narrowBytes is the most that a narrow reads at once.
const narrowBytes = 16

// narrow reads few bytes at a time. The metadata library keeps its buffers for the next image;
// they would have 4 KiB of this one, such as its thumbnail.
type narrow struct{ *bytes.Reader }

// Read reads at most narrowBytes bytes.
func (n narrow) Read(p []byte) (int, error) { return n.Reader.Read(p[:min(len(p), narrowBytes)]) }

// whole returns the number of a tag, or 0 if it is none. EXIF asks for a SHORT; some programs write
// a LONG or a BYTE.
func whole(value any) int {
	switch v := value.(type) {
	case uint8:
		return int(v)
	case uint16:
		return int(v)
	case uint32:
		return int(v)
	}
	return 0
}

// orientationOf returns the orientation, 1 to 8, in an EXIF block, which is a TIFF file. It returns
// 1 if there is no valid one: a broken EXIF block is no reason to refuse a photo.
func orientationOf(block []byte) int {
	found := 1
	if len(block) > exifBytesMax {
		return found
	}
	// The error is dropped on purpose, see above.
	_, _ = imagemeta.Decode(imagemeta.Options{
		R:            narrow{bytes.NewReader(block)},
		ImageFormat:  imagemeta.TIFF,
		Sources:      imagemeta.EXIF,
		LimitNumTags: exifTagsMax,
		ShouldHandleTag: func(tag imagemeta.TagInfo) bool {
			return tag.Tag == "Orientation" && tag.Namespace == "IFD0"
		},
		HandleTag: func(tag imagemeta.TagInfo) error {
			if v := whole(tag.Value); v >= 1 && v <= 8 {
				found = v
			}
			return imagemeta.ErrStopWalking
		},
	})
	return found
}
