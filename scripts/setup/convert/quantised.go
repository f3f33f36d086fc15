package convert

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// foldConstants replaces the weights that the graph computes from initialisers, by
// DequantizeLinear in blocks and by Reshape, by initialisers of float32. It
// removes the inputs that no operator reads any more, and Constant and Dropout,
// which do nothing in a graph that is not trained.
func (m *model) foldConstants() error {
	kept := make([]node, 0, len(m.nodes))
	same := map[string]string{} // outputs of Dropout by its input
	for _, n := range m.nodes {
		for i, name := range n.inputs {
			if from, ok := same[name]; ok {
				n.inputs[i] = from
			}
		}
		folded, err := m.fold(&n)
		switch {
		case err != nil:
			return fmt.Errorf("operator %q: %w", n.name, err)
		case folded != nil:
			m.tensors = append(m.tensors, *folded)
		case n.op == "Constant":
		case n.op == "Dropout" && len(n.inputs) > 0 && len(n.outputs) == 1:
			same[n.outputs[0]] = n.inputs[0]
		default:
			kept = append(kept, n)
		}
	}
	m.nodes = kept
	m.inputs = slices.DeleteFunc(m.inputs, func(v value) bool { return m.readers(v.name) == 0 || m.tensor(v.name) != nil })
	return nil
}

// fold returns the output of an operator on initialisers, or nil if the operator
// is another one.
func (m *model) fold(n *node) (*tensor, error) {
	if len(n.inputs) == 0 || len(n.outputs) != 1 {
		return nil, nil
	}
	first := m.tensor(n.inputs[0])
	switch {
	case first == nil:
		return nil, nil
	case n.op == "Reshape" && len(n.inputs) == 2:
		return reshaped(n.outputs[0], first, m.tensor(n.inputs[1]))
	case n.op == "DequantizeLinear" && len(n.inputs) == 3:
		return n.dequantized(first, m.tensor(n.inputs[1]), m.tensor(n.inputs[2]))
	default:
		return nil, nil
	}
}

func reshaped(name string, t, shape *tensor) (*tensor, error) {
	if shape == nil {
		return nil, fmt.Errorf("%w: a shape that is no initialiser", errWire)
	}
	if n, ok := volume(shape.ints); !ok || n != len(t.floats) {
		return nil, fmt.Errorf("%w: %d numbers in the shape %v", errWire, len(t.floats), shape.ints)
	}
	return &tensor{name: name, dims: shape.ints, floats: t.floats}, nil
}

// dequantized returns (q − zero) × scale. Scale and zero are those of a block of
// numbers along the last dimension.
func (n *node) dequantized(q, scale, zero *tensor) (*tensor, error) {
	axis, block := n.intAttr("axis"), n.intAttr("block_size")
	if scale == nil || zero == nil || len(q.dims) == 0 || axis != int64(len(q.dims)-1) || block < 1 {
		return nil, fmt.Errorf("%w: not in blocks along the last dimension", errWire)
	}
	cols := q.dims[axis]
	if cols < 1 || len(q.small) == 0 {
		return nil, fmt.Errorf("%w: no numbers of 8 bits", errWire)
	}
	rows := int64(len(q.small)) / cols
	blocks := (cols + block - 1) / block
	if int64(len(scale.floats)) != rows*blocks || int64(len(zero.small)) != rows*blocks {
		return nil, fmt.Errorf("%w: %d scales and %d zeros for %d blocks", errWire, len(scale.floats), len(zero.small), rows*blocks)
	}
	t := &tensor{name: n.outputs[0], dims: q.dims, floats: make([]float32, len(q.small))}
	for i := range t.floats {
		row, col := int64(i)/cols, int64(i)%cols
		at := row*blocks + col/block
		t.floats[i] = float32(int(q.small[i])-int(zero.small[at])) * scale.floats[at]
	}
	return t, nil
}

// intAttr returns the integer attribute of that name, or 0.
func (n *node) intAttr(name string) int64 {
	v, _ := n.attr(name)
	return v
}

// floatAttr returns the float attribute of that name, or 0.
func (n *node) floatAttr(name string) float32 {
	_, v := n.attr(name)
	return v
}

func (n *node) attr(name string) (whole int64, real float32) {
	for _, a := range n.attrs {
		var got string
		var i int64
		var f float32
		err := fields(a, func(fd field) error {
			switch {
			case fd.id == attrName:
				got = string(fd.data)
			case fd.id == attrInt:
				i = int64(fd.num)
			case fd.id == attrFloat && fd.kind == protowire.Fixed32Type:
				f = math.Float32frombits(binary.LittleEndian.Uint32(fd.data))
			}
			return nil
		})
		if err == nil && got == name {
			return i, f
		}
	}
	return 0, 0
}
