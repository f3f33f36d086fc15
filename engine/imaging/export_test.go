package imaging

import (
	"context"
	"errors"
	"image"
	"io"
	"os"
	"strconv"
	"time"
)

// Standard returns c with the standard library in place of libjpeg-turbo.
func (c Config) Standard() Config {
	if j, ok := c.source.(*jpegImage); ok {
		other := *j
		other.library = nil
		c.source = &other
		several := j.head.progressive
		c.fixedBytes, c.pixelBytes = other.memory(several), 0
	}
	return c
}

// NewFolder makes the process's folder for the compiled HEIC decoder, and nothing in it.
func NewFolder() error {
	_, err := newFolder()
	return err
}

// Warm is Keep, and compiles the decoder.
func Warm(ctx context.Context) (cool func() error, err error) {
	cool, err = Keep()
	if err != nil {
		return nil, err
	}
	if err := Compile(ctx); err != nil {
		return nil, errors.Join(err, cool())
	}
	return cool, nil
}

// Cool makes the process one without a compiled HEIC decoder, until warm is called.
func Cool() (warm func()) {
	dir := warmed.Swap(nil)
	return func() { warmed.Store(dir) }
}

// Children bounds the decoders of HEIC that run at once.
var Children = children

// Ends of a child that answers nothing, in place of its shrink.
const (
	Crashes = -1 - iota
	Fails
	IsKilled
	Spins // until the bound of its processor time
	Hangs
)

// Variables come before the init of heicchild.go.
var _ = endChild()

func endChild() struct{} {
	s, err := strconv.Atoi(os.Getenv(childVariable))
	if err != nil || s > 0 {
		return struct{}{}
	}
	switch s {
	case Crashes:
		panic("as the decoder would")
	case Fails:
		os.Exit(childFails)
	case IsKilled:
		p, _ := os.FindProcess(os.Getpid()) // never fails on Unix
		_ = p.Kill()
	case Spins:
		childProcessor = childProcessorTest
		limitChild()
		for {
			s++ // until it is killed
		}
	}
	select {}
}

// childProcessorTest is the least that the kernel counts.
const childProcessorTest = time.Second

// EndOfChild returns the error of a HEIC whose decoder ends so, with less time for it.
func EndOfChild(ctx context.Context, end int, wall time.Duration) error {
	defer func(processor, wall time.Duration) { childProcessor, childWall = processor, wall }(childProcessor, childWall)
	childProcessor, childWall = childProcessorTest, wall
	c := Config{Format: "HEIC", source: endOfChild(end)}
	return c.DecodeInto(ctx, new(Image), nil, Whole)
}

type endOfChild Shrink

func (e endOfChild) decode(ctx context.Context, _ *Image, _ *Config, _ Shrink, data []byte) error {
	return startChild(ctx, Shrink(e), data, func(byte, io.Reader) error { return nil })
}

// LeaveBuffer makes pixels of another picture the memory that the next decode may take.
func LeaveBuffer(pix []uint8) { buffers.Put(&pix) }

// Colours decodes data and returns how many colours the image of the standard library had before
// it was wiped, and has now. ok is false for a format that is decoded in another way.
func (c Config) Colours(data []byte) (before, now int, ok bool) {
	p, ok := c.source.(plain)
	if !ok {
		return 0, 0, false
	}
	count := func(im image.Image) int {
		seen := map[[3]uint8]bool{}
		row, pix := rowReader(im), make([]uint8, 3*im.Bounds().Dx())
		for y := range im.Bounds().Dy() {
			row(y, pix)
			for x := 0; x < len(pix); x += 3 {
				seen[[3]uint8(pix[x:])] = true
			}
		}
		return len(seen)
	}
	var raw image.Image
	c.source = plain(func(data []byte) (im image.Image, err error) {
		if raw, err = p(data); err == nil {
			before = count(raw)
		}
		return raw, err
	})
	if err := c.DecodeInto(context.Background(), new(Image), data, Whole); err != nil {
		return 0, 0, false
	}
	return before, count(raw), true
}
