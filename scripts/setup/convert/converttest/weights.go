package converttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Dlib returns random weights for dlib's face recognition network in the form that
// convert.Dlib reads: an index and a file of 8-bit numbers. The network's numbers
// stay near 1 in every layer.
func Dlib(seed uint64) (index, data []byte) {
	w := &writer{random: rand.New(rand.NewPCG(seed, 0))}
	w.conv("conv32_down", 7, 3, 32)
	in := 32
	for _, block := range []string{
		"conv32_1", "conv32_2", "conv32_3", "conv64_down", "conv64_1", "conv64_2", "conv64_3", "conv128_down",
		"conv128_1", "conv128_2", "conv256_down", "conv256_1", "conv256_2", "conv256_down_out",
	} {
		var out int
		if _, err := fmt.Sscanf(block, "conv%d_", &out); err != nil {
			panic("bug: " + err.Error())
		}
		w.conv(block+"/conv1", 3, in, out)
		w.conv(block+"/conv2", 3, out, out)
		in = out
	}
	w.array("fc", 1/math.Sqrt(256), 0, 256, 128)
	return []byte(`[{"weights":[` + strings.Join(w.entries, ",") + `],"paths":["weights.bin"]}]`), w.data
}

type writer struct {
	random  *rand.Rand
	entries []string
	data    []byte
}

func (w *writer) conv(name string, kernel, in, out int) {
	w.array(name+"/conv/filters", math.Sqrt(1/float64(kernel*kernel*in)), 0, kernel, kernel, in, out)
	w.array(name+"/conv/bias", .01, 0, out)
	w.array(name+"/scale/weights", .2, 1, out)
	w.array(name+"/scale/biases", .1, 0, out)
}

// array adds numbers of 8 bits, evenly spread about a mean with a standard
// deviation.
func (w *writer) array(name string, deviation, mean float64, dims ...int) {
	n, shape := 1, make([]string, len(dims))
	for i, d := range dims {
		n, shape[i] = n*d, fmt.Sprint(d)
	}
	scale := deviation * math.Sqrt(12) / 255
	w.entries = append(w.entries, fmt.Sprintf(
		`{"name":%q,"shape":[%s],"dtype":"float32","quantization":{"dtype":"uint8","scale":%g,"min":%g}}`,
		name, strings.Join(shape, ","), scale, mean-127.5*scale))
	for range n {
		w.data = append(w.data, byte(w.random.Uint32()))
	}
}
