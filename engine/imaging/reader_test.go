package imaging_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"facet/engine/imaging"
	"facet/internal/must"
)

// reader is Pillow in a process of its own (testdata/judge). Its decoders share nothing
// with facet's but libjpeg-turbo and libheif, which it calls by other ways and in other versions.
type reader struct {
	mu  sync.Mutex // held from a question to the end of its answer
	in  io.Writer
	out *bufio.Reader
}

// reading is the answer of the reader to a file: a picture, or the reason for a refusal.
type reading struct {
	im      imaging.Image
	refused string
}

func startReader(t *testing.T) *reader {
	t.Helper()
	python, err := filepath.Abs(filepath.Join("..", "..", "assets", "venv", "bin", "python"))
	must.Do(t, err)
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("Pillow reads beside facet in this test, and is not set up: run make venv (%v)", err)
	}
	command := exec.Command(python, "-B", "-W", "ignore", filepath.Join("testdata", "judge", "reader.py"))
	var problems bytes.Buffer // libtiff's warnings among them
	command.Stderr = &problems
	in, err := command.StdinPipe()
	must.Do(t, err)
	out, err := command.StdoutPipe()
	must.Do(t, err)
	must.Do(t, command.Start())
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the reader ended with %v:\n%s", err, problems.Bytes())
		}
	})
	return &reader{in: in, out: bufio.NewReaderSize(out, 1<<20)}
}

func (r *reader) ask(kind byte, s imaging.Shrink, body []byte) error {
	head := binary.LittleEndian.AppendUint32([]byte{kind, byte(s)}, uint32(len(body)))
	_, err := r.in.Write(append(head, body...))
	return err
}

func (r *reader) number() (int, error) {
	var b [4]byte
	_, err := io.ReadFull(r.out, b[:])
	return int(binary.LittleEndian.Uint32(b[:])), err
}

// sample is a file that the test starts from.
type sample struct {
	name  string
	data  []byte
	whole *imaging.Image // as facet reads it
}

// samples returns pictures of every variant, made of the photos.
func (r *reader) samples(photos string, seed uint64) ([]sample, error) {
	if err := r.ask('m', imaging.Whole, fmt.Appendf(nil, "%d %s", seed, photos)); err != nil {
		return nil, err
	}
	n, err := r.number()
	if err != nil {
		return nil, err
	}
	list := make([]sample, n)
	for i := range list {
		var parts [2][]byte
		for j := range parts {
			length, err := r.number()
			if err != nil {
				return nil, err
			}
			parts[j] = make([]byte, length)
			if _, err := io.ReadFull(r.out, parts[j]); err != nil {
				return nil, err
			}
		}
		list[i] = sample{name: string(parts[0]), data: parts[1]}
	}
	return list, nil
}

// read returns what the reader makes of a file. Only a JPEG can be read shrunk.
func (r *reader) read(data []byte, s imaging.Shrink) (reading, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ask('r', s, data); err != nil {
		return reading{}, err
	}
	width, err := r.number()
	if err != nil {
		return reading{}, fmt.Errorf("the reader died: %w", err)
	}
	height, err := r.number()
	if err != nil {
		return reading{}, err
	}
	if width == 0 {
		reason := make([]byte, height)
		_, err := io.ReadFull(r.out, reason)
		return reading{refused: string(reason)}, err
	}
	im := imaging.NewImage(width, height)
	_, err = io.ReadFull(r.out, im.Pix)
	return reading{im: *im}, err
}
