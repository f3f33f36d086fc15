package convert

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// producer is the producer named in the converted model. It is the first path of
// this package and can't change, because the hash of the model's bytes is fixed.
const producer = "facet engine/models/convert"

// batchName is the name of the free batch dimension.
const batchName = "n"

// encode writes the model. The same model always gives the same bytes: fields are
// in the order of their numbers, elements in the order of the slices.
func (m *model) encode() []byte {
	var opset, graph []byte
	opset = appendVarint(opset, opsetVersion, m.opset)
	for _, n := range m.nodes {
		graph = appendBytes(graph, graphNode, n.encode())
	}
	graph = appendBytes(graph, graphName, []byte(m.name))
	for _, t := range m.tensors {
		graph = appendBytes(graph, graphTensor, t.encode())
	}
	for _, v := range m.inputs {
		graph = appendBytes(graph, graphInput, v.encode())
	}
	for _, v := range m.outputs {
		graph = appendBytes(graph, graphOutput, v.encode())
	}
	var out []byte
	out = appendVarint(out, modelIRVersion, m.irVersion)
	out = appendBytes(out, modelProducer, []byte(producer))
	out = appendBytes(out, modelGraph, graph)
	return appendBytes(out, modelOpset, opset)
}

func (n *node) encode() []byte {
	var b []byte
	for _, s := range n.inputs {
		b = appendBytes(b, nodeInput, []byte(s))
	}
	for _, s := range n.outputs {
		b = appendBytes(b, nodeOutput, []byte(s))
	}
	b = appendBytes(b, nodeName, []byte(n.name))
	b = appendBytes(b, nodeOp, []byte(n.op))
	for _, a := range n.attrs {
		b = appendBytes(b, nodeAttr, a)
	}
	return b
}

func (t *tensor) encode() []byte {
	var b, raw []byte
	for _, d := range t.dims {
		b = appendVarint(b, tensorDims, uint64(d))
	}
	elem := uint64(elemInt64)
	if t.floats != nil {
		elem = elemFloat
		raw = appendFloats(nil, t.floats)
	}
	for _, v := range t.ints {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	b = appendVarint(b, tensorType, elem)
	b = appendBytes(b, tensorName, []byte(t.name))
	return appendBytes(b, tensorRaw, raw)
}

func (v *value) encode() []byte {
	var shape, tensor, kind, b []byte
	for _, d := range v.dims {
		var dim []byte
		if d < 0 {
			dim = appendBytes(dim, dimParam, []byte(batchName))
		} else {
			dim = appendVarint(dim, dimValue, uint64(d))
		}
		shape = appendBytes(shape, shapeDim, dim)
	}
	tensor = appendVarint(tensor, typeElem, elemFloat)
	tensor = appendBytes(tensor, typeShape, shape)
	kind = appendBytes(kind, typeTensor, tensor)
	b = appendBytes(b, valueName, []byte(v.name))
	return appendBytes(b, valueType, kind)
}

// intAttr encodes an attribute with one integer.
func intAttr(name string, v uint64) []byte {
	b := appendBytes(nil, attrName, []byte(name))
	b = appendVarint(b, attrInt, v)
	return appendVarint(b, attrType, attrIsInt)
}

func appendBytes(b []byte, id protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, id, protowire.BytesType), v)
}

func appendVarint(b []byte, id protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, id, protowire.VarintType), v)
}

func appendFloats(b []byte, v []float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
