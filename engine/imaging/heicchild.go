package imaging

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"facet/engine/imaging/heif"
)

// A HEIC is decoded in a child process: a copy of this program that reads the file from its
// standard input and writes the pixels to its standard output. WebAssembly code can't be
// interrupted. Go's garbage collector waits for that code, and the whole program waits for the
// collector: 12 million pixels stopped a server for 3.9 seconds. A child can also be killed when its time is
// over, whatever a broken file does to the decoder.
const (
	// childVariable is set only in the environment of a child. Its value is the shrink.
	// The value of cacheVariable is the folder with the compiled decoder, if there is
	// one.
	childVariable = "FACET_DECODES_HEIC"
	cacheVariable = "FACET_HEIC_DECODER"
	childKill     = time.Second
	childFails    = 1 // exit code of a child that can't work, whatever the file
	childInput    = 64 << 20
	childBase     = 96 << 20 // the program, the decoder's code, and the compiler
	childText     = 500
)

// A file has childProcessor of processor time, which is the same on a busy node: more is the file's
// fault. A child that is not done in childWall is the node's. Tests set less.
var (
	childProcessor = 20 * time.Second
	childWall      = time.Minute
)

// children bounds the children that run at once. The others wait for their turn, first come, first
// served, and their time has not begun.
var children = semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))

// The first byte of the child's answer.
const (
	childRefuses = 'n' // a text follows
	childDecodes = 'y' // width and height of 32 bits, little-endian, then RGB
)

// init runs the child's part, before anything else of the program, if the process was started as a
// child. It is here, not in main, so that every program that decodes can be its own child,
// including tests.
func init() {
	if s, err := strconv.Atoi(os.Getenv(childVariable)); err == nil {
		limitChild()
		heif.KeepIn(os.Getenv(cacheVariable))
		if err := serveChild(os.Stdin, os.Stdout, Shrink(s)); err != nil {
			os.Exit(childFails)
		}
		os.Exit(0)
	}
}

// serveChild decodes one picture from in to out.
func serveChild(in io.Reader, out io.Writer, s Shrink) error {
	if err := heif.Warm(); err != nil {
		return err
	}
	im, err := decodeChild(in, s)
	if err != nil {
		text := err.Error()
		_, err = out.Write(append([]byte{childRefuses}, text[:min(len(text), childText)]...))
		return err
	}
	head := binary.LittleEndian.AppendUint32([]byte{childDecodes}, uint32(im.Width))
	if _, err := out.Write(binary.LittleEndian.AppendUint32(head, uint32(im.Height))); err != nil {
		return err
	}
	_, err = out.Write(im.Pix)
	return err
}

func decodeChild(in io.Reader, s Shrink) (*Image, error) {
	data, err := io.ReadAll(io.LimitReader(in, childInput))
	if err != nil {
		return nil, err
	}
	var c Config
	if err := configHEIC(&c, data); err != nil {
		return nil, err
	}
	im := new(Image)
	err = heif.Decode(context.Background(), data, heif.Head(c.source.(heicImage)), func(raw image.Image) error {
		if b := raw.Bounds(); b.Dx() != c.Width || b.Dy() != c.Height {
			return errors.New("its size is not the announced one")
		}
		upright(im, raw, s, 1)
		return nil
	})
	return im, err
}

// Errors of children. The first two are the node's, not the file's: see DecodeInto. The system's own
// errors name paths.
var (
	errNoDecoder = errors.New("the decoder can't run on this node")
	errWall      = fmt.Errorf("the decoder got too little processor time: %w", context.DeadlineExceeded)
	errProcessor = errors.New("it takes the decoder too much processor time")
	errDied      = errors.New("the decoder died of it")
)

// startChild waits for a turn, runs a child on data and passes the child's answer to read, its first
// byte as kind. The child has ended when startChild returns.
func startChild(ctx context.Context, s Shrink, data []byte, read func(kind byte, out io.Reader) error) error {
	self, err := os.Executable()
	if err != nil {
		return errNoDecoder
	}
	if err := children.Acquire(ctx, 1); err != nil {
		return err
	}
	defer children.Release(1)
	ctx, cancel := context.WithTimeout(ctx, childWall)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = []string{childVariable + "=" + strconv.Itoa(int(s))}
	if dir := warmed.Load(); dir != nil {
		cmd.Env = append(cmd.Env, cacheVariable+"="+*dir)
	}
	cmd.Stdin = bytes.NewReader(data)
	cmd.WaitDelay = childKill
	out, err := cmd.StdoutPipe()
	if err != nil {
		return errNoDecoder
	}
	if err := cmd.Start(); err != nil {
		return errNoDecoder
	}
	var kind [1]byte
	_, err = io.ReadFull(out, kind[:])
	if err == nil {
		err = read(kind[0], out)
	}
	_ = out.Close() // a child that still writes ends
	_ = cmd.Wait()  // what counts is the answer, or how the child ended
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return whyEnded(ctx, cmd.ProcessState)
	}
	return err
}

// whyEnded returns why a child has ended without an answer. ctx is the child's.
func whyEnded(ctx context.Context, state *os.ProcessState) error {
	switch {
	case state == nil:
		return errNoDecoder
	case ctx.Err() != nil: // else nobody here has killed it
		return errWall
	// The kernel kills by its ticks, and then reports less: 5 % at 20 s, and more of the second of a
	// test (measured).
	case state.UserTime()+state.SystemTime() >= childProcessor/2:
		return errProcessor
	case state.ExitCode() == childFails || state.ExitCode() < 0: // somebody killed it
		return errNoDecoder
	}
	return errDied
}

// warmed is the folder with the compiled decoder, or nil.
var warmed atomic.Pointer[string]

// Keep keeps the HEIC decoder that a picture has compiled in a temporary folder until cool is
// called. Compiling takes one to two seconds of one core; without Keep every picture compiles. Keep
// also removes the folders of processes that were killed. A process calls it once.
func Keep() (cool func() error, err error) {
	dir, err := newFolder()
	if err != nil {
		return nil, fmt.Errorf("keep the compiled HEIC decoder: %w", err)
	}
	warmed.Store(&dir.path)
	return func() error {
		warmed.Store(nil)
		return dir.remove()
	}, nil
}

// Compile compiles the HEIC decoder for the pictures after it, unless one has done so.
func Compile(ctx context.Context) error {
	err := startChild(ctx, Whole, nil, func(kind byte, _ io.Reader) error {
		if kind != childRefuses { // no bytes are no picture
			return errors.New("the decoder answers wrongly")
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("try the HEIC decoder: %w", err)
	}
	return err
}

func (heicImage) decode(ctx context.Context, im *Image, c *Config, s Shrink, data []byte) error {
	return startChild(ctx, s, data, func(kind byte, out io.Reader) error {
		if kind != childDecodes {
			text, err := io.ReadAll(io.LimitReader(out, childText))
			if err != nil {
				return err
			}
			return errors.New(string(text))
		}
		var head [8]byte
		if _, err := io.ReadFull(out, head[:]); err != nil {
			return err
		}
		w, h := int(binary.LittleEndian.Uint32(head[:])), int(binary.LittleEndian.Uint32(head[4:]))
		if w != s.side(c.Width) || h != s.side(c.Height) {
			return errors.New("its size is not the announced one")
		}
		im.resize(w, h)
		_, err := io.ReadFull(out, im.Pix)
		return err
	})
}
