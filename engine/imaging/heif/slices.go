package heif

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// libde265 leaves out what it can't decode of a damaged picture, and libheif
// returns the rest: both end a slice wherever the damaged data seem to. So the
// sandbox looks at two functions of libde265 while they work, and counts. Data that
// decoding has lost its way in do not end where the slice ends, or at another block.
const (
	// moduleSum is the SHA-256 of the module that the numbers below are of, version
	// 0.4.5 of the library: libheif 1.18.2 with libde265 1.0.15.
	moduleSum = "04e7804a4ef20096660ac9347face433661b3c06e4da825c2dac15c06f101657"

	// sliceBegins is init_CABAC_decoder(decoder, data, length), called for each slice.
	sliceBegins = 690
	// lastBit is decode_CABAC_term_bit(decoder), called behind each coding tree
	// block: 1 says that the slice ends. It is called for the ends of rows, too, and
	// before samples that are not compressed.
	lastBit = 693

	// blockAddress is thread_context.CtbAddrInTS, the number of the block in the order
	// of decoding, from thread_context.cabac_decoder.
	blockAddress = -18544
	// dataAt and dataEnd are CABAC_decoder.bitstream_curr and bitstream_end.
	dataAt, dataEnd = 4, 8
)

var errIncomplete = errors.New("it is damaged: parts of the picture are missing")

// watch counts what is decoded of the pictures of one file.
type watch struct {
	blocks  []int64 // that a picture of the file may have
	decoder uint32  // address
	next    int64   // block of the picture that is decoded
	begun   bool    // a slice has, and none of its blocks
	whole   bool    // the slice ended where its data end
	broken  bool
}

func newWatch(blocks []int64) *watch { return &watch{blocks: blocks, whole: true} }

// end reports whether all pictures were whole.
func (w *watch) end() error {
	if w.broken || !w.whole || !slices.Contains(w.blocks, w.next) {
		return errIncomplete
	}
	return nil
}

// block notes that a block was decoded.
func (w *watch) block(address int64) {
	switch {
	case w.begun && address == 0 && w.next > 0: // of the next picture
		w.broken = w.broken || w.end() != nil
		w.next = 1
	case address == w.next:
		w.next++
	case address != w.next-1 || w.begun:
		w.broken = true
	}
	w.begun, w.whole = false, false
}

// watchKey is the context's key of the watch.
type watchKey struct{}

// listener calls the watch of a run. It implements wazero's FunctionListener.
type listener struct{}

// listen returns the listener of a function of the module, nil for most.
func listen(f api.FunctionDefinition) experimental.FunctionListener {
	if i := f.Index(); i == sliceBegins || i == lastBit {
		return listener{}
	}
	return nil
}

// Before is called before the function.
func (listener) Before(ctx context.Context, m api.Module, f api.FunctionDefinition, args []uint64, _ experimental.StackIterator) {
	w := ctx.Value(watchKey{}).(*watch)
	if f.Index() == sliceBegins {
		// A slice that ended early was the last of its picture, or it was not.
		w.broken = w.broken || !w.whole
		w.begun = true
		return
	}
	w.decoder = uint32(args[0])
	address, ok := m.Memory().ReadUint32Le(uint32(int64(w.decoder) + blockAddress))
	w.broken = w.broken || !ok
	w.block(int64(address))
}

// After is called with what the function returned.
func (listener) After(ctx context.Context, m api.Module, f api.FunctionDefinition, results []uint64) {
	w := ctx.Value(watchKey{}).(*watch)
	if f.Index() != lastBit || uint32(results[0]) != 1 {
		return
	}
	state, ok := m.Memory().Read(w.decoder, dataEnd+4)
	if !ok {
		return
	}
	at, end := binary.LittleEndian.Uint32(state[dataAt:]), binary.LittleEndian.Uint32(state[dataEnd:])
	rest, ok := m.Memory().Read(at, end-at)
	w.whole = ok && at <= end && len(bytes.Trim(rest, "\x00")) == 0 // zeros may follow (H.265, 7.3.2.10)
}

// Abort is called when the function does not return: the picture fails.
func (listener) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}
