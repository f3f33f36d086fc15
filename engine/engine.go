package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"facet/engine/imaging"
	"facet/engine/models"
	"facet/engine/onnx"
	"facet/engine/score"
	"facet/internal/pinned"
)

const (
	workersMax   = 1024
	queueMax     = 65_536
	queuePerCore = 32

	decodeBytes = 1 << 30
)

var (
	// ErrBusy is returned when the queue of the engine is full.
	ErrBusy = errors.New("engine is busy")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("engine is closed")
)

// Config configures an engine. Its zero value, except for Library, is a good choice.
type Config struct {
	// Library is the path of ONNX Runtime's shared library. A process loads only one. The engine
	// uses libjpeg-turbo if it lies beside it or the system has it.
	Library string
	// LibrarySHA256 is the SHA-256 of Library, 64 hexadecimal digits. Empty means the library that
	// set-up installs. libjpeg-turbo beside that one has to be set-up's, too.
	LibrarySHA256 string
	// Workers is how many images the engine processes at once, each on one core. 0 means one for
	// each core that the process may use, even if GOMAXPROCS is more.
	Workers int
	// DecodeBytes is the most memory of the images processed at once. A larger image is processed
	// alone. 0 means 1 GiB.
	DecodeBytes int64
	// Queue is how many requests may wait for a worker; one more gets ErrBusy. 0 means 32 for each
	// worker.
	Queue int
}

// Engine finds faces in images and makes their templates with one pack of models. It is safe for
// concurrent use. On one machine the same bytes give the same faces, bit for bit.
type Engine struct {
	pack  *models.Pack
	table *score.Table

	nets    networks
	workers chan *worker // idle ones; its capacity is the number of workers
	spare   chan *worker // one more, for the borrower of a Turn
	waiting atomic.Int64
	queue   int64

	memory      *semaphore.Weighted // of decoded images, in bytes
	memoryBytes int64
	releaser    *releaser

	closing sync.Once
	closed  chan struct{}
}

// New loads the pack's models and allocates the workers.
func New(pack *models.Pack, cfg Config) (*Engine, error) {
	if cfg.Workers == 0 {
		cfg.Workers = min(runtime.GOMAXPROCS(0), runtime.NumCPU(), workersMax)
	}
	if cfg.Queue == 0 {
		cfg.Queue = min(queuePerCore*cfg.Workers, queueMax)
	}
	if cfg.DecodeBytes == 0 {
		cfg.DecodeBytes = decodeBytes
	}
	if cfg.Workers < 0 || cfg.Workers > workersMax || cfg.Queue < 0 || cfg.Queue > queueMax || cfg.DecodeBytes < 0 {
		return nil, fmt.Errorf("new engine: %d workers, a queue of %d or %d bytes are out of range",
			cfg.Workers, cfg.Queue, cfg.DecodeBytes)
	}
	table, err := tableOf(pack.Manifest)
	if err != nil {
		return nil, fmt.Errorf("new engine: %w", err)
	}
	if err := loadLibraries(cfg); err != nil {
		return nil, fmt.Errorf("new engine: %w", err)
	}
	e := &Engine{
		pack:    pack,
		table:   table,
		workers: make(chan *worker, cfg.Workers),
		spare:   make(chan *worker, 1),
		queue:   int64(cfg.Queue),
		memory:  semaphore.NewWeighted(cfg.DecodeBytes),
		closed:  make(chan struct{}),

		memoryBytes: cfg.DecodeBytes,
		releaser:    newReleaser(freeMemory),
	}
	if err := e.open(); err != nil {
		e.free(len(e.workers), len(e.spare))
		return nil, fmt.Errorf("new engine: %w", err)
	}
	return e, nil
}

func loadLibraries(cfg Config) error {
	if err := onnx.Load(cfg.Library, cfg.LibrarySHA256); err != nil {
		return err
	}
	beside := imaging.Any
	if cfg.LibrarySHA256 == "" {
		beside = imaging.Installed
	}
	// Without libjpeg-turbo the standard library decodes JPEG; imaging.JPEGDecoder returns the one
	// in use.
	err := imaging.LoadTurbo(filepath.Dir(cfg.Library), beside)
	if _, changed := errors.AsType[*pinned.ChangedError](err); changed {
		return err
	}
	return nil
}

func (e *Engine) open() error {
	if err := e.nets.open(e.pack); err != nil {
		return err
	}
	for _, home := range []chan *worker{e.workers, e.spare} {
		for range cap(home) {
			w, err := newWorker(e.pack.Manifest, &e.nets)
			if err != nil {
				return err
			}
			home <- w
		}
	}
	return nil
}

// Close waits for the requests that have a worker, refuses the others with ErrClosed, and frees the
// models. It may be called more than once.
func (e *Engine) Close() {
	e.closing.Do(func() {
		close(e.closed)
		e.free(cap(e.workers), cap(e.spare))
		e.releaser.stop()
	})
}

func (e *Engine) free(workers, spare int) {
	for range workers {
		(<-e.workers).close()
	}
	for range spare {
		(<-e.spare).close()
	}
	e.nets.close()
}

// Pack returns the engine's pack.
func (e *Engine) Pack() *models.Pack { return e.pack }

// Dim returns the number of values in a template.
func (e *Engine) Dim() int { return e.pack.Manifest.Dim() }

// Table returns the score table of the pack.
func (e *Engine) Table() *score.Table { return e.table }

// Spectrum returns the share of a template's squared norm that each value usually has, or nil if
// the pack does not say.
func (e *Engine) Spectrum() []float64 { return e.pack.Manifest.Spectrum() }

// Compare returns the score of two templates of this engine's pack, 0 … 9999. Their order does
// not matter.
func (e *Engine) Compare(a, b Template) int { return e.table.Score(score.Dot(a, b)) }

// Extract returns the faces of an image (imaging.Formats), at most MaxFaces, the largest first,
// then by X. An image without faces is no error. The error wraps ErrImage if the bytes are no
// image, ErrBusy if too many requests wait, ErrClosed, context.DeadlineExceeded if a decoder got too
// little processor time, or the error of ctx, which is checked between the stages.
func (e *Engine) Extract(ctx context.Context, image []byte) ([]Face, error) {
	return e.extract(ctx, image, search{tiles: true})
}

// ExtractLarge is Extract for an image of one person. It does not look for small faces, and returns
// only those whose side is at least share (0 to 1) of the largest one's. It costs less than Extract
// on large images and on crowds.
func (e *Engine) ExtractLarge(ctx context.Context, image []byte, share float32) ([]Face, error) {
	if !(share >= 0 && share <= 1) {
		return nil, fmt.Errorf("extract: share %v is not from 0 to 1", share)
	}
	return e.extract(ctx, image, search{share: float64(share)})
}

func (e *Engine) extract(ctx context.Context, image []byte, s search) ([]Face, error) {
	var faces []Face
	err := e.withWorker(ctx, image, func(w *worker, x *extraction, head imaging.Config) (err error) {
		faces, err = w.extract(ctx, x, head, image, s)
		return err
	})
	return faces, err
}

// withWorker calls do with a worker for the image.
func (e *Engine) withWorker(ctx context.Context, image []byte, do func(w *worker, x *extraction, head imaging.Config) error) error {
	// Checking the limits first keeps refused images from waiting for a worker.
	head, err := imaging.DecodeConfig(image)
	if err != nil {
		return fmt.Errorf("extract: %w: %w", ErrImage, err)
	}
	w, err := e.take(ctx)
	if err != nil {
		return fmt.Errorf("extract: %w", err)
	}
	x := &extraction{e: e, memory: lease{from: e.memory, most: e.memoryBytes}, home: e.workers}
	defer func() {
		if x.memory.held > keepBytes || head.LeavesGarbage() {
			e.releaser.soon()
		}
		x.memory.end()
		x.home <- w
	}()
	err = do(w, x, head)
	if errors.Is(err, imaging.ErrDecode) {
		err = fmt.Errorf("%w: %w", ErrImage, err)
	}
	if err != nil {
		return fmt.Errorf("extract: %w", err)
	}
	return nil
}

// take waits for a worker, first come, first served.
func (e *Engine) take(ctx context.Context) (*worker, error) {
	select {
	case <-e.closed:
		return nil, ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case w := <-e.workers: // only when nobody waits
		return w, nil
	default:
	}
	defer e.waiting.Add(-1)
	if e.waiting.Add(1) > e.queue {
		return nil, ErrBusy
	}
	select {
	case w := <-e.workers:
		return w, nil
	case <-e.closed:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Workers returns how many images the engine processes at once.
func (e *Engine) Workers() int { return cap(e.workers) }

// Waiting returns how many images wait for a worker now.
func (e *Engine) Waiting() int { return int(e.waiting.Load()) }

// Work counts the operations of an engine since New, for measurements.
type Work struct {
	// Detector, Landmarks, Embedder and Second, the second embedder, are runs of the models.
	Detector, Landmarks, Embedder, Second int64
	// Decoded are decodings of images at full size, ½, ¼ and ⅛.
	Decoded [4]int64
}

// Work returns the counts so far. While the engine processes images they need not be of one moment.
func (e *Engine) Work() Work {
	w := Work{Detector: e.nets.detector.Runs(), Landmarks: e.nets.landmarks.Runs(), Embedder: e.nets.embedder.Runs()}
	if e.nets.second != nil {
		w.Second = e.nets.second.Runs()
	}
	for i := range w.Decoded {
		w.Decoded[i] = e.nets.decoded[i].Load()
	}
	return w
}

func tableOf(m *models.Manifest) (*score.Table, error) {
	table, err := tableOfPoints(m.Calibration.Points)
	if err != nil {
		return nil, err
	}
	var means score.Means
	for _, of := range m.Calibration.Subjects {
		if means[score.Kind(of.Photos)], err = tableOfPoints(of.Points); err != nil {
			return nil, fmt.Errorf("subjects of %d photos: %w", of.Photos, err)
		}
	}
	return table.With(means), nil
}

func tableOfPoints(from []models.CalibrationPoint) (*score.Table, error) {
	points := make([]score.Point, len(from))
	for i, p := range from {
		points[i] = score.Point(p)
	}
	return score.NewTable(points)
}
