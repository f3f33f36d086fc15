package imaging

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"facet/engine/imaging/heif"
)

// format is one kind of file.
type format struct {
	name string
	// is recognises the format by the first bytes.
	is func(data []byte) bool
	// config sets all of c but its format, within the limits of checkSize.
	config func(c *Config, data []byte) error
}

var formats = []format{
	{"JPEG", starts("\xff\xd8\xff"), configJPEG},
	{"PNG", starts(pngSignature), configPNG},
	{"GIF", starts("GIF8"), configGIF},
	{"BMP", starts("BM"), configBMP},
	{"WebP", isWebP, configWebP},
	{"TIFF", isTIFF, configTIFF},
	{"HEIC", heif.Is, configHEIC},
}

// Formats returns the names of the formats that Decode reads, for messages and
// documents.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

func starts(with string) func([]byte) bool {
	return func(data []byte) bool { return bytes.HasPrefix(data, []byte(with)) }
}

func isWebP(data []byte) bool {
	return len(data) >= webpHead && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP"
}

func isTIFF(data []byte) bool {
	return bytes.HasPrefix(data, []byte("II*\x00")) || bytes.HasPrefix(data, []byte("MM\x00*"))
}

func formatOf(data []byte) (*format, error) {
	if len(data) == 0 {
		return nil, errors.New("it has no bytes")
	}
	for i := range formats {
		if formats[i].is(data) {
			return &formats[i], nil
		}
	}
	names := Formats()
	last := len(names) - 1
	return nil, fmt.Errorf("it is neither %s nor %s", strings.Join(names[:last], ", "), names[last])
}
