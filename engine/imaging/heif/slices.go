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

// libde265 leaves out damaged parts of a picture, and libheif returns the rest: both end a slice
// wherever the damaged data seem to. So the sandbox watches two functions of libde265 and counts
// blocks. After damage, decoding does not end where the data of the slice end, or ends at another
// block.
const (
	// moduleSum is the SHA-256 of the module that has these functions, version 0.4.5 of the
	// library: libheif 1.18.2 with libde265 1.0.15.
	moduleSum = "04e7804a4ef20096660ac9347face433661b3c06e4da825c2dac15c06f101657"

	// sliceBegins is init_CABAC_decoder(decoder, data, length), called for each slice.
	sliceBegins = 690
	// lastBit is decode_CABAC_term_bit(decoder), called after each coding tree block; 1 means that
	// the slice ends. It is also called at the ends of rows and before uncompressed samples.
	lastBit = 693

	// blockAddress is the offset of thread_context.CtbAddrInTS, the number of the block in the
	// order of decoding, from thread_context.cabac_decoder.
	blockAddress = -18544
	// dataAt and dataEnd are the offsets of CABAC_decoder.bitstream_curr and bitstream_end.
	dataAt, dataEnd = 4, 8
)

var errIncomplete = errors.New("it is damaged: parts of the picture are missing")

// watch counts the decoded blocks of one file's pictures.
type watch struct {
	blocks  []int64 // possible numbers of blocks of a picture
	decoder uint32  // address
	next    int64   // number of the next block
	begun   bool    // a slice has begun and none of its blocks is decoded
	whole   bool    // the slice ended where its data end
	broken  bool
}

func newWatch(blocks []int64) *watch { return &watch{blocks: blocks, whole: true} }

// end returns an error unless all pictures were whole.
func (w *watch) end() error {
	if w.broken || !w.whole || !slices.Contains(w.blocks, w.next) {
		return errIncomplete
	}
	return nil
}

// block notes that a block was decoded.
func (w *watch) block(address int64) {
	switch {
	case w.begun && address == 0 && w.next > 0: // the next picture begins
		w.broken = w.broken || w.end() != nil
		w.next = 1
	case address == w.next:
		w.next++
	case address != w.next-1 || w.begun:
		w.broken = true
	}
	w.begun, w.whole = false, false
}

// watchKey is the context key of the watch.
type watchKey struct{}

// listener reports calls to the watch of a run. It implements wazero's FunctionListener.
type listener struct{}

// listen returns the listener of a function of the module, or nil.
func listen(f api.FunctionDefinition) experimental.FunctionListener {
	if i := f.Index(); i == sliceBegins || i == lastBit {
		return listener{}
	}
	return nil
}

// Before runs before the function.
func (listener) Before(ctx context.Context, m api.Module, f api.FunctionDefinition, args []uint64, _ experimental.StackIterator) {
	w := ctx.Value(watchKey{}).(*watch)
	if f.Index() == sliceBegins {
		// If the slice before ended early, data are missing.
		w.broken = w.broken || !w.whole
		w.begun = true
		return
	}
	w.decoder = uint32(args[0])
	address, ok := m.Memory().ReadUint32Le(uint32(int64(w.decoder) + blockAddress))
	w.broken = w.broken || !ok
	w.block(int64(address))
}

// After runs with the result of the function.
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

// Abort runs when the function does not return; then the picture fails.
func (listener) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}
