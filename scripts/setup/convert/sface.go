package convert

import (
	"fmt"
	"math"
)

const (
	sfaceDim = 128
	// SFaceMean is taken from each value of SFace's input.
	SFaceMean = 127.5
	// SFaceScale multiplies what is left.
	SFaceScale = 1.0 / 128
	// slopeGap is the least distance of a PRelu's slope from 1.
	slopeGap = 1e-3
)

// SFace converts OpenCV's SFace with weights of 8 bits to float32. The graph is a
// chain: preparation of the input, convolutions each with a normalisation and a
// PRelu, and a full layer between normalisations. SFace
//
//   - leaves the preparation to the caller: (x − SFaceMean) × SFaceScale.
//   - folds each normalisation into the layer before or behind it.
//   - scales each convolution's output x to z = |1 − a|·x, where a is the PRelu's
//     slope. Then ±PRelu(x) = Relu(z) ± Conv(z, a / |1 − a|), depthwise 1 × 1,
//     with minus for slopes above 1. The next layer's weights take the sign. ONNX
//     Runtime adds within the convolution and stays in its blocked layout.
//   - makes the batch dimension free.
//
// The model's input is [n, 3, 112, 112], RGB; its output is [n, 128]. src is at
// most 64 MiB. The same src gives the same bytes everywhere.
func SFace(src []byte) ([]byte, error) {
	m, err := readModel(src)
	if err == nil {
		err = m.foldConstants()
	}
	if err != nil {
		return nil, fmt.Errorf("convert sface: read model: %w", err)
	}
	if len(m.inputs) != 1 || len(m.outputs) != 1 {
		return nil, fmt.Errorf("convert sface: %w: it has not one input and one output", errWire)
	}
	c := &chain{from: m, rest: m.nodes, at: m.inputs[0].name}
	c.to = model{irVersion: m.irVersion, opset: m.opset, name: "sface", inputs: m.inputs, outputs: m.outputs}
	if err := c.convert(); err != nil {
		return nil, fmt.Errorf("convert sface: %w", err)
	}
	if err := c.to.freeBatch(sfaceDim); err != nil {
		return nil, fmt.Errorf("convert sface: %w", err)
	}
	return c.to.encode(), nil
}

// chain is a graph in which each operator reads the output of the one before.
type chain struct {
	from *model
	to   model
	rest []node // the operators that are not read yet
	at   string // the output of the last one that was read
	made string // what the new graph has instead of at
	sign []float64
}

// next returns the next operator if it is op, with its inputs of initialisers.
func (c *chain) next(op string, inputs int) (*node, []*tensor, error) {
	if len(c.rest) == 0 || c.rest[0].op != op {
		return nil, nil, fmt.Errorf("%w: no %s behind %q", errWire, op, c.at)
	}
	n := &c.rest[0]
	if len(n.inputs) != 1+inputs || len(n.outputs) != 1 || n.inputs[0] != c.at {
		return nil, nil, fmt.Errorf("%w: operator %q", errWire, n.name)
	}
	list := make([]*tensor, inputs)
	for i, name := range n.inputs[1:] {
		if list[i] = c.from.tensor(name); list[i] == nil || len(list[i].floats) == 0 || !finite(list[i].floats) {
			return nil, nil, fmt.Errorf("%w: operator %q has no finite numbers %q", errWire, n.name, name)
		}
	}
	c.rest, c.at = c.rest[1:], n.outputs[0]
	return n, list, nil
}

func (c *chain) convert() error {
	c.made = c.at
	for _, step := range []struct {
		op   string
		want float32
	}{{"Sub", SFaceMean}, {"Mul", SFaceScale}} {
		_, v, err := c.next(step.op, 1)
		if err != nil {
			return err
		}
		if len(v[0].floats) != 1 || v[0].floats[0] != step.want {
			return fmt.Errorf("%w: %s by another number than %v", errWire, step.op, step.want)
		}
	}
	for len(c.rest) > 0 && c.rest[0].op == "Conv" {
		if err := c.convolution(); err != nil {
			return err
		}
	}
	if err := c.full(); err != nil {
		return err
	}
	if len(c.rest) > 0 || c.at != c.from.outputs[0].name {
		return fmt.Errorf("%w: operators behind the last layer", errWire)
	}
	return nil
}

// norm reads a BatchNormalization of that many channels: y = scale·x + shift.
func (c *chain) norm(channels int) (scale, shift []float64, err error) {
	n, v, err := c.next("BatchNormalization", 4)
	if err != nil {
		return nil, nil, err
	}
	epsilon := float64(n.floatAttr("epsilon"))
	scale, shift = make([]float64, channels), make([]float64, channels)
	for _, t := range v {
		if len(t.floats) != channels {
			return nil, nil, fmt.Errorf("%w: operator %q has not %d channels", errWire, n.name, channels)
		}
	}
	for i := range scale {
		gamma, beta, mean, variance := float64(v[0].floats[i]), float64(v[1].floats[i]), float64(v[2].floats[i]), float64(v[3].floats[i])
		if !(variance+epsilon > 0) {
			return nil, nil, fmt.Errorf("%w: operator %q has a variance of %v", errWire, n.name, variance)
		}
		scale[i] = gamma / math.Sqrt(variance+epsilon)
		shift[i] = beta - float64(mean*scale[i])
	}
	return scale, shift, nil
}

// convolution converts a convolution, its normalisation and its PRelu.
func (c *chain) convolution() error {
	n, v, err := c.next("Conv", 1)
	if err != nil {
		return err
	}
	w := v[0]
	if len(w.dims) != 4 {
		return fmt.Errorf("%w: operator %q", errWire, n.name)
	}
	channels := int(w.dims[0])
	scale, shift, err := c.norm(channels)
	if err != nil {
		return err
	}
	_, v, err = c.next("PRelu", 1)
	if err != nil {
		return err
	}
	slopes := v[0].floats
	if len(slopes) != channels {
		return fmt.Errorf("%w: %d slopes for %d channels", errWire, len(slopes), channels)
	}
	signed, err := c.signed(n, w)
	if err != nil {
		return err
	}
	weights, bias, rest := make([]float32, len(signed)), make([]float32, channels), make([]float32, channels)
	c.sign = make([]float64, channels)
	each := len(signed) / channels
	for o, a := range slopes {
		gap := math.Abs(1 - float64(a))
		if gap < slopeGap {
			return fmt.Errorf("%w: operator %q has a slope of %v", errWire, n.name, a)
		}
		c.sign[o] = math.Copysign(1, 1-float64(a))
		for i := o * each; i < (o+1)*each; i++ {
			weights[i] = float32(signed[i] * scale[o] * gap)
		}
		bias[o], rest[o] = float32(shift[o]*gap), float32(c.sign[o]*float64(a)/gap)
	}
	c.emit(n, tensor{dims: w.dims, floats: weights}, tensor{dims: []int64{int64(channels)}, floats: bias}, rest)
	return nil
}

// signed returns a convolution's weights for the signed output of the layer
// before.
func (c *chain) signed(n *node, w *tensor) ([]float64, error) {
	out := make([]float64, len(w.floats))
	group, ins := n.intAttr("group"), int(w.dims[1])
	channels, before := int(w.dims[0]), len(c.sign)
	depthwise := int(group) == channels && ins == 1
	if channels < 1 || channels > maxOutputs || before > 0 && (depthwise && before != channels || !depthwise && (group != 1 || before != ins)) {
		return nil, fmt.Errorf("%w: operator %q does not fit the layer before", errWire, n.name)
	}
	each := len(out) / channels
	kernel := each / ins
	for i, x := range w.floats {
		out[i] = float64(x)
		switch {
		case before == 0:
		case depthwise:
			out[i] *= c.sign[i/each]
		default:
			out[i] *= c.sign[i%each/kernel]
		}
	}
	return out, nil
}

// emit adds a convolution with its PRelu.
func (c *chain) emit(n *node, w, b tensor, rest []float32) {
	x := n.outputs[0]
	channels := b.dims[0]
	w.name, b.name = x+"_w", x+"_b"
	all := tensor{name: x + "_rest_w", dims: []int64{channels, 1, 1, 1}, floats: rest}
	c.to.tensors = append(c.to.tensors, w, b, all)
	group := [][]byte{intAttr("group", uint64(channels))}
	c.to.nodes = append(
		c.to.nodes,
		node{op: "Conv", name: x, inputs: []string{c.made, w.name, b.name}, outputs: []string{x}, attrs: n.attrs},
		node{op: "Relu", name: x + "_relu", inputs: []string{x}, outputs: []string{x + "_relu"}},
		node{op: "Conv", name: x + "_rest", inputs: []string{x, all.name}, outputs: []string{x + "_rest"}, attrs: group},
		node{op: "Add", name: x + "_add", inputs: []string{x + "_rest", x + "_relu"}, outputs: []string{x + "_add"}},
	)
	c.made = x + "_add"
}

// full converts the full layer and the normalisations before and behind it.
func (c *chain) full() error {
	scale, shift, err := c.norm(len(c.sign))
	if err != nil {
		return err
	}
	flatten, _, err := c.next("Flatten", 0)
	if err != nil {
		return err
	}
	gemm, v, err := c.next("Gemm", 2)
	if err != nil {
		return err
	}
	w, b := v[0], v[1]
	if gemm.intAttr("transB") != 1 || gemm.intAttr("transA") != 0 || gemm.floatAttr("alpha") != 1 || gemm.floatAttr("beta") != 1 ||
		len(w.dims) != 2 || w.dims[0] != sfaceDim || len(b.floats) != sfaceDim || w.dims[1]%int64(len(c.sign)) != 0 {
		return fmt.Errorf("%w: operator %q is no full layer of %d numbers", errWire, gemm.name, sfaceDim)
	}
	last, end, err := c.norm(sfaceDim)
	if err != nil {
		return err
	}
	cols := int(w.dims[1])
	area := cols / len(c.sign)
	weights, bias := make([]float32, len(w.floats)), make([]float32, sfaceDim)
	for o := range bias {
		sum := float64(b.floats[o])
		for i := range cols {
			x := float64(w.floats[o*cols+i])
			sum += float64(x * shift[i/area])
			weights[o*cols+i] = float32(x * scale[i/area] * c.sign[i/area] * last[o])
		}
		bias[o] = float32(float64(sum*last[o]) + end[o])
	}
	out := c.from.outputs[0].name
	c.to.tensors = append(c.to.tensors, tensor{name: out + "_w", dims: w.dims, floats: weights}, tensor{name: out + "_b", dims: []int64{sfaceDim}, floats: bias})
	c.to.nodes = append(
		c.to.nodes,
		node{op: "Flatten", name: flatten.name, inputs: []string{c.made}, outputs: []string{flatten.name}, attrs: [][]byte{intAttr("axis", 1)}},
		node{op: "Gemm", name: gemm.name, inputs: []string{flatten.name, out + "_w", out + "_b"}, outputs: []string{out}, attrs: [][]byte{intAttr("transB", 1)}},
	)
	return nil
}
