package heif

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	_ "unsafe" // for go:linkname

	_ "github.com/gen2brain/heic" // holds the module
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

const moduleBytesMax = 16 << 20

// compressed is the module, which the library embeds and does not export. Linking fails with a
// version that keeps it elsewhere.
//
//go:linkname compressed github.com/gen2brain/heic.heifWasm
var compressed []byte

// cacheDir is the folder of the compiled module, if not empty.
var cacheDir string

// KeepIn makes dir the cache of the compiled module. It must be called before all other functions.
// Whoever can write to dir decides which code runs.
func KeepIn(dir string) { cacheDir = dir }

// sandbox is the compiled module, one for the process.
type sandbox struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// compiled compiles the module at the first call, which takes about a second. The code does not
// check contexts, which would make it six times as slow; ReadHead's limits bound its time instead.
var compiled = sync.OnceValues(func() (*sandbox, error) {
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("unpack the HEIC decoder: %w", err)
	}
	code, err := io.ReadAll(io.LimitReader(z, moduleBytesMax))
	if err != nil {
		return nil, fmt.Errorf("unpack the HEIC decoder: %w", err)
	}
	if sum := sha256.Sum256(code); hex.EncodeToString(sum[:]) != moduleSum {
		return nil, errors.New("the HEIC decoder is not the one whose functions are known")
	}
	// Not the caller's context: the compiled module outlives it.
	ctx := experimental.WithFunctionListenerFactory(context.Background(), experimental.FunctionListenerFactoryFunc(listen))
	config := wazero.NewRuntimeConfig()
	if cacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
		if err != nil {
			return nil, fmt.Errorf("keep the compiled HEIC decoder: %w", err)
		}
		config = config.WithCompilationCache(cache)
	}
	r := wazero.NewRuntimeWithConfig(ctx, config)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the HEIC decoder: %w", err), r.Close(ctx))
	}
	m, err := r.CompileModule(ctx, code)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compile the HEIC decoder: %w", err), r.Close(ctx))
	}
	return &sandbox{runtime: r, module: m}, nil
})

// Warm compiles the decoder, so that the first picture does not wait for it.
func Warm() error {
	_, err := compiled()
	return err
}
