package convert

import "fmt"

// yunetStrides are the sizes of YuNet's cells in pixels. Sides of its input are
// multiples of the last.
var yunetStrides = [...]int{8, 16, 32}

// yunetValues are YuNet's outputs, and how many numbers each has for a cell.
var yunetValues = []struct {
	name string
	each int64
}{{"cls", 1}, {"obj", 1}, {"bbox", 4}, {"kps", 10}}

// yunetSideMax is the longest side of YuNet's input.
const yunetSideMax = 2048

// YuNet converts OpenCV's YuNet with weights of 8 bits to float32, for images of
// another size. The model's input is [1, 3, height, width], BGR from 0 to 255. Its
// outputs are cls, obj, bbox and kps of each stride 8, 16 and 32, for example
// "cls_8" [1, cells, 1]. src is at most 64 MiB. The same src gives the same bytes
// everywhere.
func YuNet(src []byte, width, height int) ([]byte, error) {
	const doing = "convert yunet"
	most := yunetStrides[len(yunetStrides)-1]
	for _, side := range []int{width, height} {
		if side < most || side > yunetSideMax || side%most != 0 {
			return nil, fmt.Errorf("%s: an input of %d × %d: sides are multiples of %d up to %d", doing, width, height, most, yunetSideMax)
		}
	}
	m, err := readModel(src)
	if err == nil {
		err = m.foldConstants()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: read model: %w", doing, err)
	}
	m.dropUnused()
	if len(m.inputs) != 1 || len(m.inputs[0].dims) != 4 {
		return nil, fmt.Errorf("%s: %w: it has not one input of four dimensions", doing, errWire)
	}
	m.name, m.inputs[0].dims = "yunet", []int64{1, 3, int64(height), int64(width)}
	outputs := make(map[string][]int64)
	for _, stride := range yunetStrides {
		for _, v := range yunetValues {
			outputs[fmt.Sprintf("%s_%d", v.name, stride)] = []int64{1, int64(width/stride) * int64(height/stride), v.each}
		}
	}
	for i := range m.outputs {
		o := &m.outputs[i]
		dims, ok := outputs[o.name]
		if !ok {
			return nil, fmt.Errorf("%s: %w: output %q", doing, errWire, o.name)
		}
		delete(outputs, o.name)
		o.dims = dims
	}
	if len(outputs) > 0 {
		return nil, fmt.Errorf("%s: %w: %d outputs are missing", doing, errWire, len(outputs))
	}
	return m.encode(), nil
}
