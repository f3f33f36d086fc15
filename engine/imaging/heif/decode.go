package heif

import (
	"context"
	"errors"
	"fmt"
	"image"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Memory of a picture in the sandbox: the file, memoryFixed for the program, and memoryPixel for
// each pixel. The last covers the decoder's planes, the canvas of the tiles, the returned planes,
// and the decoder's notes about blocks. Measured: 6 bytes a pixel of 4:2:0.
const (
	memoryFixed = 16 << 20
	memoryPixel = 24
)

// Memory returns the most bytes that decoding a file of fileBytes takes.
func (h Head) Memory(fileBytes int) int64 {
	return memoryFixed + int64(fileBytes) + memoryPixel*max(h.Pixels, int64(h.Width)*int64(h.Height))
}

// budget is the memory of one picture. It implements wazero's allocator.
type budget struct {
	memory []byte
	err    error
}

// Allocate returns b; wazero calls it once.
func (b *budget) Allocate(_, _ uint64) experimental.LinearMemory { return b }

// Reallocate returns the first n bytes, or nil if there are fewer.
func (b *budget) Reallocate(n uint64) []byte {
	if n > uint64(len(b.memory)) {
		return nil
	}
	return b.memory[:n]
}

// Free frees the memory.
func (b *budget) Free() {
	b.err = release(b.memory)
	b.memory = nil
}

// Values of libheif's heif_colorspace and heif_chroma.
const (
	spaceYCbCr = 0
	spaceRGB   = 1
	spaceGrey  = 2
	chroma420  = 1
	chroma422  = 2
	chroma444  = 3
)

// libheif makes a row at least planeLeast samples long, and a multiple of planeAlign bytes.
const (
	planeLeast = 64
	planeAlign = 16
)

// Decode decodes the primary picture of a file, for which ReadHead returned h, turned upright as
// the file says. It passes the picture to use; its pixels are freed when use returns. It
// ignores the end of ctx after the decoder has started.
func Decode(ctx context.Context, data []byte, h Head, use func(image.Image) error) error {
	return decodeIn(ctx, data, h, h.Memory(len(data)), use)
}

// decodeIn is Decode in the given number of bytes.
func decodeIn(ctx context.Context, data []byte, h Head, bytes int64, use func(image.Image) error) (err error) {
	s, err := compiled()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	memory, err := reserve(int(bytes))
	if err != nil {
		return fmt.Errorf("reserve memory: %w", err)
	}
	b := &budget{memory: memory}
	// Without the caller's cancellation: nothing stops a picture that has begun.
	ctx = experimental.WithMemoryAllocator(context.WithoutCancel(ctx), b)
	w := newWatch(h.blocks)
	ctx = context.WithValue(ctx, watchKey{}, w)
	m, err := s.runtime.InstantiateModule(ctx, s.module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return errors.Join(fmt.Errorf("start the HEIC decoder: %w", err), release(memory))
	}
	defer func() { err = errors.Join(err, m.Close(ctx), b.err) }()
	im, err := (&call{ctx: ctx, module: m}).decode(data[:h.end], h.bits)
	if err != nil {
		return err
	}
	if err := w.end(); err != nil {
		return err
	}
	return use(im)
}

// call is one picture's run of the module.
type call struct {
	ctx    context.Context // of this run; has the budget
	module api.Module
}

// do calls a function of the module that returns one number.
func (c *call) do(name string, args ...uint64) (uint32, error) {
	f := c.module.ExportedFunction(name)
	if f == nil {
		return 0, fmt.Errorf("the HEIC decoder has no %s", name)
	}
	r, err := f.Call(c.ctx, args...)
	if err != nil || len(r) != 1 {
		return 0, errors.New("the decoder gave up: the file is broken or needs too much memory")
	}
	return uint32(r[0]), nil
}

func (c *call) alloc(n int) (uint32, error) {
	at, err := c.do("malloc", uint64(n))
	if err == nil && at == 0 {
		err = errors.New("it needs too much memory")
	}
	return at, err
}

// answers are the numbers that the module's decode returns, in their order.
type answers struct{ width, height, space, chroma, premultiplied uint32 }

func (c *call) decode(data []byte, bits int64) (image.Image, error) {
	in, err := c.alloc(len(data))
	if err != nil {
		return nil, err
	}
	// The module reads files of two brands only, whatever they contain.
	if memory := c.module.Memory(); !memory.Write(in, data) || !memory.WriteString(in+brandAt, "heic") {
		return nil, errors.New("it needs too much memory")
	}
	at, err := c.alloc(4 * 5)
	if err != nil {
		return nil, err
	}
	a, err := c.run(in, len(data), at, 0)
	if err != nil {
		return nil, err
	}
	p, err := a.planes(bits)
	if err != nil {
		return nil, err
	}
	out, err := c.alloc(p.size)
	if err != nil {
		return nil, err
	}
	again, err := c.run(in, len(data), at, out)
	if err != nil {
		return nil, err
	}
	pix, ok := c.module.Memory().Read(out, uint32(p.size))
	if !ok || again != a {
		return nil, errors.New("the decoder contradicts itself")
	}
	return p.image(pix), nil
}

// run calls the module's decode. If out is 0 it reads the head only.
func (c *call) run(in uint32, n int, at, out uint32) (answers, error) {
	headOnly := uint64(0)
	if out == 0 {
		headOnly = 1
	}
	w := uint64(at)
	ok, err := c.do("decode", uint64(in), uint64(n), headOnly, w, w+4, w+8, w+12, w+16, uint64(out))
	if err != nil {
		return answers{}, err
	}
	if ok == 0 {
		return answers{}, errors.New("it is broken, or of a kind that is not read")
	}
	var v [5]uint32
	for i := range v {
		value, there := c.module.Memory().ReadUint32Le(at + uint32(4*i))
		if !there {
			return answers{}, errors.New("the decoder contradicts itself")
		}
		v[i] = value
	}
	return answers{v[0], v[1], v[2], v[3], v[4]}, nil
}
