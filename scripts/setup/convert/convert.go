package convert

import (
	"errors"
	"fmt"
	"math"
)

// Result is the result of Embedder.
type Result struct {
	// Model is the converted ONNX model: input [n, 3, h, w], output [n, dim].
	Model []byte
	// Basis is dim rows of little-endian float32, each as long as the source's
	// output: coordinates = Basis · (output of the source).
	Basis []byte
}

// Embedder converts a MobileFaceNet in ONNX form, whose last two operators are a
// 1 × 1 convolution and a Reshape to rows of all outputs. The converted model
// returns the dim coordinates of the former output in a basis made of the last
// layer's weights. Embedder also
//
//   - replaces PRelu(x, a) by Conv(Relu(x), 1−a) + Conv(x, a), depthwise 1 × 1.
//     ONNX Runtime then stays in its blocked layout, which halves the time.
//     (Max(x, a·x) would be wrong, because some slopes are above 1.)
//   - makes the batch dimension free, and replaces the Reshape by a Flatten.
//
// src is at most 64 MiB. The same src and dim give the same bytes everywhere.
func Embedder(src []byte, dim int) (Result, error) {
	m, err := readModel(src)
	if err != nil {
		return Result{}, fmt.Errorf("convert embedder: read model: %w", err)
	}
	basis, err := m.foldBasis(dim)
	if err != nil {
		return Result{}, fmt.Errorf("convert embedder: %w", err)
	}
	if err := m.replacePRelu(); err != nil {
		return Result{}, fmt.Errorf("convert embedder: %w", err)
	}
	if err := m.freeBatch(int64(dim)); err != nil {
		return Result{}, fmt.Errorf("convert embedder: %w", err)
	}
	m.dropUnused()
	return Result{Model: m.encode(), Basis: appendFloats(nil, basis)}, nil
}

// ending is the part of a graph that foldBasis replaces: a 1 × 1 convolution
// with weights w and bias b, whose output is reshaped to rows.
type ending struct {
	reshape *node
	w, b    *tensor
}

// ending returns the ending of the graph. It returns an error that names the
// first operator that is not as expected.
func (m *model) ending() (*ending, error) {
	n := len(m.nodes)
	if n < 2 || len(m.outputs) != 1 {
		return nil, fmt.Errorf("%w: fewer than two operators, or not one output", errWire)
	}
	conv, reshape := &m.nodes[n-2], &m.nodes[n-1]
	if conv.op != "Conv" || reshape.op != "Reshape" || len(conv.inputs) != 3 || len(conv.outputs) != 1 ||
		len(reshape.inputs) != 2 || len(reshape.outputs) != 1 ||
		reshape.inputs[0] != conv.outputs[0] || reshape.outputs[0] != m.outputs[0].name {
		return nil, fmt.Errorf("%w: it does not end with a convolution and a Reshape", errWire)
	}
	for _, name := range append(conv.inputs[1:3:3], conv.outputs[0]) {
		if m.readers(name) != 1 {
			return nil, fmt.Errorf("%w: %q is used elsewhere, too", errWire, name)
		}
	}
	w, b, shape := m.tensor(conv.inputs[1]), m.tensor(conv.inputs[2]), m.tensor(reshape.inputs[1])
	if w == nil || b == nil || w.floats == nil || b.floats == nil || len(w.dims) != 4 || len(b.dims) != 1 ||
		w.dims[2] != 1 || w.dims[3] != 1 || w.dims[0] != b.dims[0] || max(w.dims[0], w.dims[1]) > maxOutputs {
		return nil, fmt.Errorf("%w: the last convolution is not 1 × 1 with a bias, or larger than %d", errWire, maxOutputs)
	}
	// In the target of a Reshape, −1 means "all that is left".
	if shape == nil || len(shape.ints) != 2 || (shape.ints[0] != 1 && shape.ints[0] != -1) ||
		(shape.ints[1] != w.dims[0] && shape.ints[1] != -1) {
		return nil, fmt.Errorf("%w: the Reshape is not to rows of %d", errWire, w.dims[0])
	}
	return &ending{reshape: reshape, w: w, b: b}, nil
}

// foldBasis replaces the last two operators by the projected layer and Flatten,
// and returns the basis.
func (m *model) foldBasis(dim int) ([]float32, error) {
	e, err := m.ending()
	if err != nil {
		return nil, err
	}
	l := layer{rows: int(e.w.dims[0]), cols: int(e.w.dims[1]), w: e.w.floats, bias: e.b.floats}
	if dim < 2 || dim > l.rows {
		return nil, fmt.Errorf("dimension %d is not from 2 to the %d outputs", dim, l.rows)
	}
	if !finite(l.w) || !finite(l.bias) {
		return nil, errors.New("the last layer's weights are not finite")
	}
	basis, err := l.basis(dim)
	if err != nil {
		return nil, err
	}
	p := l.project(basis)
	e.w.dims, e.w.floats = []int64{int64(p.rows), int64(p.cols), 1, 1}, p.w
	e.b.dims, e.b.floats = []int64{int64(p.rows)}, p.bias
	*e.reshape = node{
		op: "Flatten", name: e.reshape.name, inputs: e.reshape.inputs[:1], outputs: e.reshape.outputs,
		attrs: [][]byte{intAttr("axis", 1)},
	}
	return basis, nil
}

// replacePRelu replaces each PRelu that has one slope for each channel by four
// operators.
func (m *model) replacePRelu() error {
	nodes := make([]node, 0, 2*len(m.nodes))
	nSlopes := 0
	for _, n := range m.nodes {
		if n.op != "PRelu" {
			nodes = append(nodes, n)
			continue
		}
		if len(n.inputs) != 2 || len(n.outputs) != 1 {
			return fmt.Errorf("%w: operator %q", errWire, n.name)
		}
		slope := m.tensor(n.inputs[1])
		if slope == nil || len(slope.dims) != 3 || slope.dims[1] != 1 || slope.dims[2] != 1 || len(slope.floats) == 0 {
			return fmt.Errorf("%w: operator %q has not one slope a channel", errWire, n.name)
		}
		if nSlopes += len(slope.floats); nSlopes > maxSlopes {
			return fmt.Errorf("%w: more than %d slopes", errWire, maxSlopes)
		}
		x, y := n.inputs[0], n.outputs[0]
		positive := make([]float32, len(slope.floats))
		for i, a := range slope.floats {
			positive[i] = 1 - a
		}
		dims := []int64{slope.dims[0], 1, 1, 1}
		pos := tensor{name: y + "_w_pos", dims: dims, floats: positive}
		all := tensor{name: y + "_w_all", dims: dims, floats: slope.floats}
		m.tensors = append(m.tensors, pos, all)
		group := [][]byte{intAttr("group", uint64(slope.dims[0]))}
		nodes = append(
			nodes,
			node{op: "Relu", name: n.name + "_relu", inputs: []string{x}, outputs: []string{y + "_relu"}},
			node{op: "Conv", name: n.name + "_pos", inputs: []string{y + "_relu", pos.name}, outputs: []string{y + "_pos"}, attrs: group},
			node{op: "Conv", name: n.name + "_all", inputs: []string{x, all.name}, outputs: []string{y + "_all"}, attrs: group},
			node{op: "Add", name: n.name + "_add", inputs: []string{y + "_pos", y + "_all"}, outputs: []string{y}},
		)
	}
	m.nodes = nodes
	return nil
}

// freeBatch makes the first dimension of input and output free.
func (m *model) freeBatch(dim int64) error {
	if len(m.inputs) != 1 || len(m.inputs[0].dims) != 4 {
		return fmt.Errorf("%w: it has not one input of four dimensions", errWire)
	}
	m.inputs[0].dims[0] = -1
	m.outputs[0].dims = []int64{-1, dim}
	return nil
}

// dropUnused removes the tensors that no operator reads any more.
func (m *model) dropUnused() {
	used := make(map[string]bool)
	for _, n := range m.nodes {
		for _, in := range n.inputs {
			used[in] = true
		}
	}
	kept := m.tensors[:0]
	for _, t := range m.tensors {
		if used[t.name] {
			kept = append(kept, t)
		}
	}
	m.tensors = kept
}

// readers returns how many inputs of operators have this name.
func (m *model) readers(name string) int {
	count := 0
	for _, n := range m.nodes {
		for _, in := range n.inputs {
			if in == name {
				count++
			}
		}
	}
	return count
}

func (m *model) tensor(name string) *tensor {
	for i := range m.tensors {
		if m.tensors[i].name == name {
			return &m.tensors[i]
		}
	}
	return nil
}

func finite(v []float32) bool {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return false
		}
	}
	return true
}
