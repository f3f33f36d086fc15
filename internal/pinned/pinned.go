package pinned

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// fileBytesMax is the most bytes of a file that is hashed.
const fileBytesMax = 1 << 30

// pins has the SHA-256 of libraries by platform and name.
var pins = map[string]map[string]string{
	"linux/amd64": {
		"libonnxruntime.so": "fc44112fbe06d7d689c57e11d3862031f64711007e4ee020f8eed5185fd2c1d3",
		"libturbojpeg.so.0": "6facda09ef3e2308608f2b0214c040791e276305a48a27036362402f95fffcf5",
	},
	"linux/arm64": {
		"libonnxruntime.so": "8aa3b76b28c778a2b1dd660d34161adb1d508c9ccd04ff9dc80e26eca5df8467",
		"libturbojpeg.so.0": "a84dbc892b9e438c72022bc6ad892400d21ffdf5d7184928d59807371b7c86d5",
	},
	"darwin/arm64": {
		"libonnxruntime.dylib": "f8b06155feece624e55e49124340eea279da812529ae6fbc46a9f2be9c9cad2e",
	},
}

// Hash returns the SHA-256 of a library that set-up installs on this platform, in
// hexadecimal digits, or "" if it installs none of that name.
func Hash(name string) string { return pins[runtime.GOOS+"/"+runtime.GOARCH][name] }

// ChangedError is returned for a file with another SHA-256 than the pinned one.
type ChangedError struct{ File, Want, Got string }

// Error names the file and both hashes.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s has SHA-256 %s, and must have %s", e.File, e.Got, e.Want)
}

// Open opens a regular file and compares its SHA-256 with want. A difference is a
// *ChangedError.
func Open(name, want string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait
	if err != nil {
		return nil, err
	}
	got, err := hash(f)
	if err == nil && got != want {
		err = &ChangedError{File: name, Want: want, Got: got}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func hash(f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > fileBytesMax {
		return "", fmt.Errorf("%s is no file of at most %d bytes", f.Name(), fileBytesMax)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, fileBytesMax)); err != nil {
		return "", fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// LoadName returns a name by which the system's loader loads the bytes that Open has
// hashed, even if the file's name means another file by now. The file must stay open until
// the process ends: the loader takes two libraries of one name for the same.
//
// Where there is no /proc, it returns the file's own name.
func LoadName(f *os.File) string {
	byNumber := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	if _, err := os.Stat(byNumber); err == nil {
		return byNumber
	}
	return f.Name()
}
