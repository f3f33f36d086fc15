package convert

import "math/rand/v2"

// Plain returns a network of random weights from [n, 3, side, side] to [n, dim].
func Plain(side, dim int64) []byte {
	const kernel = 15
	rng := rand.New(rand.NewPCG(1, 2))
	w := tensor{name: "w", dims: []int64{dim, 3, kernel, kernel}, floats: make([]float32, dim*3*kernel*kernel)}
	for i := range w.floats {
		w.floats[i] = float32(rng.NormFloat64())
	}
	m := model{
		irVersion: 7, opset: 13, name: "plain",
		inputs:  []value{{"input", []int64{-1, 3, side, side}}},
		outputs: []value{{"output", []int64{-1, dim}}},
		tensors: []tensor{w},
		nodes: []node{
			{op: "Conv", name: "conv", inputs: []string{"input", "w"}, outputs: []string{"conv"}},
			{op: "Relu", name: "relu", inputs: []string{"conv"}, outputs: []string{"relu"}},
			{op: "GlobalAveragePool", name: "pool", inputs: []string{"relu"}, outputs: []string{"pool"}},
			{op: "Flatten", name: "flatten", inputs: []string{"pool"}, outputs: []string{"output"}, attrs: [][]byte{intAttr("axis", 1)}},
		},
	}
	return m.encode()
}

// FirstOutputs returns a published embedder with its first n outputs only.
func FirstOutputs(published []byte, n int) []byte {
	m, err := readModel(published)
	if err != nil {
		panic(err)
	}
	conv, reshape := m.nodes[len(m.nodes)-2], m.nodes[len(m.nodes)-1]
	w, bias, shape := m.tensor(conv.inputs[1]), m.tensor(conv.inputs[2]), m.tensor(reshape.inputs[1])
	w.floats, w.dims[0] = w.floats[:n*int(w.dims[1])], int64(n)
	bias.floats, bias.dims[0] = bias.floats[:n], int64(n)
	shape.ints[len(shape.ints)-1] = int64(n)
	return m.encode()
}
