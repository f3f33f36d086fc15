package convert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
)

// Limits of weights in the form of TensorFlow.js.
const (
	maxIndexBytes  = 1 << 20
	maxWeightNames = 10_000
)

var errWeights = errors.New("not weights of the expected form")

// weights are the arrays of a TensorFlow.js model by name. A file contains the
// arrays one after the other; an index in JSON describes them. In an array of 8
// bits each number stands for number × scale + min.
type weights map[string]array

// array is one array in the order of TensorFlow: the last dimension varies
// fastest.
type array struct {
	dims   []int64
	values []float32
}

// weightGroup is an element of the index.
type weightGroup struct {
	Paths   []string      `json:"paths"`
	Weights []weightEntry `json:"weights"`
}

type weightEntry struct {
	Name         string        `json:"name"`
	Shape        []int64       `json:"shape"`
	DType        string        `json:"dtype"`
	Quantization *quantisation `json:"quantization"`
}

type quantisation struct {
	DType string  `json:"dtype"`
	Scale float64 `json:"scale"`
	Min   float64 `json:"min"`
}

// readWeights reads an index of at most 1 MiB and the only file that it
// describes.
func readWeights(index, data []byte) (weights, error) {
	if len(index) > maxIndexBytes || len(data) > maxModelBytes {
		return nil, fmt.Errorf("%w: larger than %d and %d bytes", errWeights, maxIndexBytes, maxModelBytes)
	}
	var groups []weightGroup
	if err := json.Unmarshal(index, &groups); err != nil {
		return nil, fmt.Errorf("%w: %w", errWeights, err)
	}
	if len(groups) != 1 || len(groups[0].Paths) != 1 || len(groups[0].Weights) > maxWeightNames {
		return nil, fmt.Errorf("%w: not one group in one file, or more than %d arrays", errWeights, maxWeightNames)
	}
	w := make(weights, len(groups[0].Weights))
	for _, e := range groups[0].Weights {
		values, rest, err := e.read(data)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", errWeights, e.Name, err)
		}
		if _, twice := w[e.Name]; twice {
			return nil, fmt.Errorf("%w: %q is there twice", errWeights, e.Name)
		}
		w[e.Name], data = array{dims: e.Shape, values: values}, rest
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%w: %d bytes too many", errWeights, len(data))
	}
	return w, nil
}

// read removes the entry's bytes from data and returns the values that they stand
// for.
func (e *weightEntry) read(data []byte) (values []float32, rest []byte, err error) {
	n, ok := volume(e.Shape)
	width := 4
	if e.Quantization != nil {
		width = 1
	}
	switch {
	case !ok || n > len(data)/width:
		return nil, nil, fmt.Errorf("shape %v is larger than what is left of the file", e.Shape)
	case e.DType != "float32", e.Quantization != nil && e.Quantization.DType != "uint8":
		return nil, nil, errors.New("neither float32 nor 8 bits of it")
	}
	values = make([]float32, n)
	for i := range values {
		if q := e.Quantization; q != nil {
			values[i] = float32(float64(float64(data[i])*q.Scale) + q.Min)
		} else {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	}
	if !finite(values) {
		return nil, nil, errors.New("a number is not finite")
	}
	return values, data[n*width:], nil
}

// take returns the array with this name. It must have the given shape.
func (w weights) take(name string, dims ...int64) ([]float32, error) {
	a, ok := w[name]
	if !ok {
		return nil, fmt.Errorf("%w: there is no %q", errWeights, name)
	}
	same := len(a.dims) == len(dims)
	for i := range dims {
		same = same && a.dims[i] == dims[i]
	}
	if !same {
		return nil, fmt.Errorf("%w: %q has the shape %v, not %v", errWeights, name, a.dims, dims)
	}
	return a.values, nil
}
