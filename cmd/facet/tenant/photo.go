package tenant

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// photoBytesMax is the most bytes of a photo. The service takes a body of 20 MiB, with the photo
// in base64.
const photoBytesMax = 15_000_000

// stdin is the name that stands for the standard input.
const stdin = "-"

// readPhoto reads a file, or the standard input.
func readPhoto(cmd *cobra.Command, name string) ([]byte, error) {
	in := cmd.InOrStdin()
	if name != stdin {
		f, err := os.Open(name)
		if err != nil {
			return nil, err // the error names the file
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, fmt.Errorf("%s is a folder: facet import registers each photo of a folder", name)
		}
		in = f
	}
	return readAll(in)
}

// readFile reads a file. Its errors name it.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	photo, err := readAll(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return photo, nil
}

func readAll(in io.Reader) ([]byte, error) {
	photo, err := io.ReadAll(io.LimitReader(in, photoBytesMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the photo: %w", err)
	case len(photo) == 0:
		return nil, errors.New("the photo is empty")
	case len(photo) > photoBytesMax:
		return nil, fmt.Errorf("the photo has more than %d MB: make it smaller", photoBytesMax/1_000_000)
	}
	return photo, nil
}
