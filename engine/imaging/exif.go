package imaging

import (
	"bytes"
	"encoding/binary"

	"github.com/bep/imagemeta"
)

const (
	exifTagsMax   = 1000
	exifBytesMax  = 64 << 10 // of a PNG's eXIf chunk; a JPEG's segment can't be longer
	pngChunksMax  = 1000     // before the pixels
	pngSignature  = 8
	pngChunkFrame = 12 // length, type and checksum
)

// jpegOrientation returns the EXIF orientation of a JPEG, 1 if there is none
// that makes sense: a broken EXIF block is no reason to refuse a photo.
func jpegOrientation(data []byte) int {
	return orientation(data, imagemeta.JPEG)
}

// pngOrientation is jpegOrientation for a PNG's eXIf chunk, which is a TIFF file.
// The chunks are walked here because the library's own walk can be sent
// backwards by a text chunk that lies about its length.
func pngOrientation(data []byte) int {
	rest := data[min(len(data), pngSignature):]
	for range pngChunksMax {
		if len(rest) < pngChunkFrame {
			return 1
		}
		n := int(binary.BigEndian.Uint32(rest))
		kind := string(rest[4:8])
		if n > len(rest)-pngChunkFrame || kind == "IDAT" {
			return 1
		}
		if kind == "eXIf" {
			if n > exifBytesMax {
				return 1
			}
			return orientation(rest[8:8+n], imagemeta.TIFF)
		}
		rest = rest[pngChunkFrame+n:]
	}
	return 1
}

func orientation(data []byte, format imagemeta.ImageFormat) int {
	found := 1
	// The error is dropped on purpose, see jpegOrientation.
	_, _ = imagemeta.Decode(imagemeta.Options{
		R:            bytes.NewReader(data),
		ImageFormat:  format,
		Sources:      imagemeta.EXIF,
		LimitNumTags: exifTagsMax,
		ShouldHandleTag: func(tag imagemeta.TagInfo) bool {
			return tag.Tag == "Orientation" && tag.Namespace == "IFD0"
		},
		HandleTag: func(tag imagemeta.TagInfo) error {
			if v, ok := tag.Value.(uint16); ok && v >= 1 && v <= 8 {
				found = int(v)
			}
			return imagemeta.ErrStopWalking
		},
	})
	return found
}
