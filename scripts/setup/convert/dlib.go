package convert

import "fmt"

// The network of Dlib: 29 convolutions in residual blocks, about half of
// ResNet-34 (He et al. 2015), as dlib trained it. A block is
//
//	x ─┬─ conv ─ relu ─ conv ─ + ─ relu ─
//	   └───────────────────────┘
//
// The lower line is the shortcut. In a block that halves the image, the first
// convolution has stride 2 and no padding, and the shortcut is an average over 2
// × 2. In a block that doubles the channels, the shortcut's new channels are
// zero. If the missing padding makes the two sizes differ, the convolutions'
// output gets zeros at the right and bottom.
const (
	dlibSide     = 150
	dlibChannels = 32
	dlibFeatures = 256
	dlibDim      = 128

	dlibIRVersion = 7
	dlibOpset     = 13
)

// dlibBlocks are the residual blocks in order. halve marks the blocks that halve
// the image.
var dlibBlocks = []struct {
	name     string
	channels int64 // of its output
	halve    bool
}{
	{"conv32_1", 32, false},
	{"conv32_2", 32, false},
	{"conv32_3", 32, false},
	{"conv64_down", 64, true},
	{"conv64_1", 64, false},
	{"conv64_2", 64, false},
	{"conv64_3", 64, false},
	{"conv128_down", 128, true},
	{"conv128_1", 128, false},
	{"conv128_2", 128, false},
	{"conv256_down", 256, true},
	{"conv256_1", 256, false},
	{"conv256_2", 256, false},
	{"conv256_down_out", 256, true},
}

// Dlib returns an ONNX model of dlib's face recognition network. Its weights have
// the form in which face-api publishes them for TensorFlow.js: an index (JSON)
// and a file of 8-bit numbers. The model's input is [n, 3, 150, 150], RGB, (x −
// mean) / 256 with dlib's means; its output is [n, 128]. Dlib folds the scale
// layer after each convolution into the convolution. The same bytes give the same
// model everywhere.
func Dlib(index, data []byte) ([]byte, error) {
	w, err := readWeights(index, data)
	if err != nil {
		return nil, fmt.Errorf("convert dlib: %w", err)
	}
	b := &dlib{w: w, side: dlibSide, channels: 3}
	b.m = model{irVersion: dlibIRVersion, opset: dlibOpset, name: "dlib face recognition resnet v1"}
	b.m.inputs = []value{{name: "input", dims: []int64{-1, 3, dlibSide, dlibSide}}}
	b.m.outputs = []value{{name: "output", dims: []int64{-1, dlibDim}}}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("convert dlib: %w", err)
	}
	return b.m.encode(), nil
}

// dlib is the model under construction. side and channels describe the output of
// the last operator.
type dlib struct {
	m              model
	w              weights
	side, channels int64
}

func (b *dlib) build() error {
	x, err := b.conv("input", "conv32_down", convolution{kernel: 7, stride: 2, channels: dlibChannels})
	if err != nil {
		return err
	}
	x = b.relu(x)
	x = b.add("MaxPool", x+"_pool", []string{x}, kernelAttrs(3, 2, 0)...)
	b.side = (b.side-3)/2 + 1
	for _, block := range dlibBlocks {
		if x, err = b.block(x, block.name, block.channels, block.halve); err != nil {
			return err
		}
	}
	x = b.add("GlobalAveragePool", "average", []string{x})
	fc, err := b.w.take("fc", dlibFeatures, dlibDim)
	if err != nil {
		return err
	}
	b.floats("fc_w", []int64{dlibDim, dlibFeatures, 1, 1}, transposed(fc, 1, 1, dlibFeatures, dlibDim))
	x = b.add("Conv", "fc", []string{x, "fc_w"})
	b.m.nodes = append(b.m.nodes, node{op: "Flatten", name: "flatten", inputs: []string{x}, outputs: []string{"output"}, attrs: [][]byte{intAttr("axis", 1)}})
	return nil
}

// block adds a residual block and returns its output.
func (b *dlib) block(x, name string, channels int64, halve bool) (string, error) {
	first := convolution{kernel: 3, stride: 1, pad: 1, channels: channels}
	if halve {
		first.stride, first.pad = 2, 0
	}
	side, before := b.side, b.channels
	y, err := b.conv(x, name+"/conv1", first)
	if err != nil {
		return "", err
	}
	y, err = b.conv(b.relu(y), name+"/conv2", convolution{kernel: 3, stride: 1, pad: 1, channels: channels})
	if err != nil {
		return "", err
	}
	if halve {
		x = b.add("AveragePool", name+"_mean", []string{x}, kernelAttrs(2, 2, 0)...)
		if channels == 2*before {
			x = b.widen(x, name, before)
		}
		if side /= 2; side > b.side {
			y = b.pad(y, name, side-b.side)
			b.side = side
		}
	}
	return b.relu(b.add("Add", name+"_sum", []string{x, y})), nil
}

// widen doubles the channels and fills the new ones with zeros. They are the
// output of a convolution with zero weights instead of a Pad, so that ONNX
// Runtime stays in its blocked layout.
func (b *dlib) widen(x, name string, channels int64) string {
	zeros := name + "_zeros"
	b.floats(zeros+"_w", []int64{channels, 1, 1, 1}, make([]float32, channels))
	b.add("Conv", zeros, []string{x, zeros + "_w"}, intAttr("group", uint64(channels)))
	return b.add("Concat", name+"_wide", []string{x, zeros}, intAttr("axis", 1))
}

// pad adds n rows and columns of zeros at the bottom and right.
func (b *dlib) pad(x, name string, n int64) string {
	pads := name + "_pads"
	b.m.tensors = append(b.m.tensors, tensor{name: pads, dims: []int64{8}, ints: []int64{0, 0, 0, 0, 0, 0, n, n}})
	return b.add("Pad", name+"_padded", []string{x, pads})
}

type convolution struct{ kernel, stride, pad, channels int64 }

// conv adds a convolution and folds the scale layer after it into it.
func (b *dlib) conv(x, name string, c convolution) (string, error) {
	filters, err := b.w.take(name+"/conv/filters", c.kernel, c.kernel, b.channels, c.channels)
	if err != nil {
		return "", err
	}
	var vectors [3][]float32
	for i, part := range []string{"/conv/bias", "/scale/weights", "/scale/biases"} {
		if vectors[i], err = b.w.take(name+part, c.channels); err != nil {
			return "", err
		}
	}
	bias, scale, shift := vectors[0], vectors[1], vectors[2]
	w := transposed(filters, c.kernel, c.kernel, b.channels, c.channels)
	each := len(w) / int(c.channels)
	sum := make([]float32, c.channels)
	for o, s := range scale {
		for i := range w[o*each : (o+1)*each] {
			w[o*each+i] = float32(float64(w[o*each+i]) * float64(s))
		}
		sum[o] = float32(float64(float64(bias[o])*float64(s)) + float64(shift[o]))
	}
	b.floats(name+"_w", []int64{c.channels, b.channels, c.kernel, c.kernel}, w)
	b.floats(name+"_b", []int64{c.channels}, sum)
	b.side = (b.side+2*c.pad-c.kernel)/c.stride + 1
	b.channels = c.channels
	return b.add("Conv", name, []string{x, name + "_w", name + "_b"}, kernelAttrs(c.kernel, c.stride, c.pad)...), nil
}

func (b *dlib) relu(x string) string { return b.add("Relu", x+"_relu", []string{x}) }

// add adds an operator whose output has the operator's name.
func (b *dlib) add(op, name string, inputs []string, attrs ...[]byte) string {
	b.m.nodes = append(b.m.nodes, node{op: op, name: name, inputs: inputs, outputs: []string{name}, attrs: attrs})
	return name
}

func (b *dlib) floats(name string, dims []int64, values []float32) {
	b.m.tensors = append(b.m.tensors, tensor{name: name, dims: dims, floats: values})
}

// transposed turns filters from height, width, in, out to out, in, height, width.
func transposed(v []float32, height, width, in, out int64) []float32 {
	t := make([]float32, len(v))
	area := height * width
	for at := range area {
		for i := range in {
			for o := range out {
				t[(o*in+i)*area+at] = v[(at*in+i)*out+o]
			}
		}
	}
	return t
}

func kernelAttrs(kernel, stride, pad int64) [][]byte {
	attrs := [][]byte{intsAttr("kernel_shape", kernel, kernel), intsAttr("strides", stride, stride)}
	if pad > 0 {
		attrs = append(attrs, intsAttr("pads", pad, pad, pad, pad))
	}
	return attrs
}
