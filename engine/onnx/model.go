package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	ort "github.com/yalue/onnxruntime_go"

	"facet/internal/stale"
)

const (
	elementsMax = 1 << 26 // of one tensor
	outputsMax  = 16
)

// ErrNotFinite is returned when an output of a network holds a NaN or an infinity.
var ErrNotFinite = errors.New("onnx: output is not finite")

// Tensor names an input or output of float32 and fixes its shape. Without a name
// it is the network's only input or output.
type Tensor struct {
	Name  string
	Shape []int64
}

// Spec is a network to open.
type Spec struct {
	// Name appears in error texts.
	Name string
	// Network is the ONNX file's content; Open keeps no reference to it.
	Network []byte
	Input   Tensor
	Outputs []Tensor
}

// Model is a network, ready to run. It is safe for concurrent use.
type Model struct {
	spec    Spec
	session *ort.DynamicAdvancedSession
	runs    atomic.Int64
	close   sync.Once
}

// Open prepares the network for runs of one thread each. It runs it once on zeros, and so refuses a
// network whose names or shapes differ from the spec. Call Load before.
func Open(spec Spec) (m *Model, err error) {
	doing := "open network " + spec.Name
	if err := checkSpec(spec); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	if Version() == "" {
		return nil, fmt.Errorf("%s: ONNX Runtime is not loaded", doing)
	}
	defer recovered(&err, doing)
	spec, err = named(spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	options, err := singleThreaded()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	defer free(options)
	names := make([]string, len(spec.Outputs))
	for i, o := range spec.Outputs {
		names[i] = o.Name
	}
	session, err := ort.NewDynamicAdvancedSessionWithONNXData(spec.Network, []string{spec.Input.Name}, names, options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	spec.Network = nil
	m = &Model{spec: spec, session: session}
	if err := m.tryZeros(); err != nil {
		m.Close()
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return m, nil
}

// named fills in the names that the spec leaves out.
func named(spec Spec) (Spec, error) {
	ins, outs, err := portsOf(spec.Network)
	if err != nil {
		return spec, err
	}
	if spec.Input.Name == "" {
		if len(ins) != 1 {
			return spec, fmt.Errorf("%d inputs, want 1", len(ins))
		}
		spec.Input.Name = ins[0]
	}
	spec.Outputs = slices.Clone(spec.Outputs)
	for i, o := range spec.Outputs {
		if o.Name != "" {
			continue
		}
		if len(outs) != 1 {
			return spec, fmt.Errorf("%d outputs, want 1", len(outs))
		}
		spec.Outputs[i].Name = outs[0]
	}
	return spec, nil
}

func checkSpec(spec Spec) error {
	if len(spec.Network) == 0 {
		return errors.New("it is empty")
	}
	if n := len(spec.Outputs); n < 1 || n > outputsMax {
		return fmt.Errorf("%d outputs, want 1 to %d", n, outputsMax)
	}
	for _, t := range append([]Tensor{spec.Input}, spec.Outputs...) {
		size := int64(1)
		for _, d := range t.Shape {
			if d < 1 || d > elementsMax || size > elementsMax/d {
				return fmt.Errorf("tensor %q has shape %v", t.Name, t.Shape)
			}
			size *= d
		}
	}
	return nil
}

// singleThreaded returns options for runs on the caller's thread alone. Many requests at once use
// the cores better than many threads a request, which collapse when the machine is busy.
func singleThreaded() (*ort.SessionOptions, error) {
	options, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		options.SetIntraOpNumThreads(1),
		options.SetInterOpNumThreads(1),
		options.SetExecutionMode(ort.ExecutionModeSequential),
		options.SetGraphOptimizationLevel(ort.GraphOptimizationLevelEnableAll),
	)
	if err != nil {
		free(options)
		return nil, err
	}
	return options, nil
}

func (m *Model) tryZeros() error {
	r, err := m.NewRunner()
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Run()
}

// Runs returns how often the network ran, including the trial of Open.
func (m *Model) Runs() int64 { return m.runs.Load() }

// Close frees the network. None of its runners may be used afterwards.
func (m *Model) Close() {
	m.close.Do(func() { free(m.session) })
}

// Runner runs a model on its own buffers, one run at a time.
type Runner struct {
	model *Model
	in    *ort.Tensor[float32]
	outs  []*ort.Tensor[float32]
	// The same tensors as the binding's Run takes them.
	inValues, outValues []ort.Value
}

// NewRunner allocates the buffers of one run at a time. Close the runner before
// the model.
func (m *Model) NewRunner() (r *Runner, err error) {
	doing := "allocate tensors of " + m.spec.Name
	defer recovered(&err, doing)
	r = &Runner{model: m}
	r.in, err = ort.NewEmptyTensor[float32](ort.NewShape(m.spec.Input.Shape...))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	r.inValues = []ort.Value{r.in}
	for _, o := range m.spec.Outputs {
		t, err := ort.NewEmptyTensor[float32](ort.NewShape(o.Shape...))
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
		r.outs = append(r.outs, t)
		r.outValues = append(r.outValues, t)
	}
	return r, nil
}

// Input returns the buffer that Run reads, in the order of the input's shape.
func (r *Runner) Input() []float32 { return r.in.GetData() }

// Output returns the buffer of the i-th output, which the next Run overwrites.
func (r *Runner) Output(i int) []float32 { return r.outs[i].GetData() }

// Clear makes the input and the outputs zero.
func (r *Runner) Clear() {
	clear(r.Input())
	for _, o := range r.outs {
		clear(o.GetData())
	}
}

// Run runs the network once, on the caller's thread. The error wraps ErrNotFinite if an output has
// a number that is not finite.
func (r *Runner) Run() (err error) {
	doing := "run network " + r.model.spec.Name
	defer recovered(&err, doing)
	r.model.runs.Add(1)
	for _, o := range r.outs {
		stale.Fill(o.GetData())
	}
	if err := r.model.session.Run(r.inValues, r.outValues); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	for i, o := range r.outs {
		if !finite(o.GetData()) {
			return fmt.Errorf("%s: output %s: %w", doing, r.model.spec.Outputs[i].Name, ErrNotFinite)
		}
	}
	return nil
}

// finite reports whether every number is finite. A NaN or an infinity has an exponent of all ones.
func finite(data []float32) bool {
	const exponent = 0x7f80_0000
	for _, v := range data {
		if math.Float32bits(v)&exponent == exponent {
			return false
		}
	}
	return true
}

// Close frees the buffers.
func (r *Runner) Close() {
	if r.in != nil {
		free(r.in)
		r.in = nil
	}
	for _, o := range r.outs {
		free(o)
	}
	r.outs, r.inValues, r.outValues = nil, nil, nil
}

// free releases a value of ONNX Runtime. Its only error is a second release, which a second Close
// causes.
func free(thing interface{ Destroy() error }) { _ = thing.Destroy() }
