package convert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The field numbers of onnx.proto3 (ONNX IR version 7) that this package needs.
const (
	modelIRVersion, modelProducer, modelGraph, modelOpset = 1, 2, 7, 8
	opsetDomain, opsetVersion                             = 1, 2
	graphNode, graphName, graphTensor                     = 1, 2, 5
	graphInput, graphOutput                               = 11, 12
	nodeInput, nodeOutput, nodeName, nodeOp, nodeAttr     = 1, 2, 3, 4, 5
	nodeDomain                                            = 7
	attrName, attrFloat, attrInt, attrType                = 1, 2, 3, 20
	tensorDims, tensorType, tensorFloats, tensorInt64s    = 1, 2, 4, 7
	tensorName, tensorRaw, tensorLocation                 = 8, 9, 14
	valueName, valueType                                  = 1, 2
	typeTensor, typeElem, typeShape                       = 1, 1, 2
	shapeDim, dimValue, dimParam                          = 1, 1, 2
)

const (
	elemFloat = 1
	elemInt8  = 3
	elemInt64 = 7
	attrIsInt = 2
)

// Limits of a model that is read.
const (
	maxModelBytes = 64 << 20
	maxNodes      = 10_000 // and as many initialisers
	maxRank       = 8
	maxOutputs    = 1024 // of the last layer, and its inputs
	// maxSlopes is the most PRelu slopes of all operators together. Many
	// operators may share one initialiser.
	maxSlopes = 1 << 20
)

var errWire = errors.New("not an ONNX model of the expected form")

// model is the kept part of an ONNX model. The rest of the file does not change
// what the model computes.
type model struct {
	irVersion, opset uint64
	name             string
	nodes            []node
	tensors          []tensor
	inputs, outputs  []value
}

// node is one operator. attrs are encoded AttributeProtos, copied unchanged.
type node struct {
	op, name        string
	inputs, outputs []string
	attrs           [][]byte
}

// tensor is an initialiser. It has floats or, if floats is nil, ints. One that is
// read and not written may have small instead.
type tensor struct {
	name   string
	dims   []int64
	floats []float32
	ints   []int64
	small  []int8
}

// value is an input or output of the graph. A dimension of −1 is free.
type value struct {
	name string
	dims []int64
}

// field is one field of an encoded message. num is the value of a varint, data
// that of any other field.
type field struct {
	id   int32
	kind protowire.Type
	num  uint64
	data []byte
}

// fields calls f with every field of an encoded message.
func fields(msg []byte, f func(field) error) error {
	for len(msg) > 0 {
		id, kind, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return fmt.Errorf("%w: %w", errWire, protowire.ParseError(n))
		}
		msg = msg[n:]
		fd := field{id: int32(id), kind: kind}
		switch kind {
		case protowire.VarintType:
			fd.num, n = protowire.ConsumeVarint(msg)
		case protowire.BytesType:
			fd.data, n = protowire.ConsumeBytes(msg)
		default:
			n = protowire.ConsumeFieldValue(id, kind, msg)
			if n >= 0 {
				fd.data = msg[:n]
			}
		}
		if n < 0 {
			return fmt.Errorf("%w: field %d: %w", errWire, id, protowire.ParseError(n))
		}
		msg = msg[n:]
		if err := f(fd); err != nil {
			return err
		}
	}
	return nil
}

func readModel(data []byte) (*model, error) {
	if len(data) > maxModelBytes {
		return nil, fmt.Errorf("%w: larger than %d bytes", errWire, maxModelBytes)
	}
	m := new(model)
	err := fields(data, func(f field) error {
		switch f.id {
		case modelIRVersion:
			m.irVersion = f.num
		case modelOpset:
			return fields(f.data, func(f field) error {
				if f.id == opsetDomain && len(f.data) > 0 {
					return fmt.Errorf("%w: operators of domain %q", errWire, f.data)
				}
				if f.id == opsetVersion {
					m.opset = f.num
				}
				return nil
			})
		case modelGraph:
			return m.readGraph(f.data)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *model) readGraph(data []byte) error {
	return fields(data, func(f field) error {
		switch f.id {
		case graphNode:
			if len(m.nodes) == maxNodes {
				return fmt.Errorf("%w: more than %d nodes", errWire, maxNodes)
			}
			n, err := readNode(f.data)
			m.nodes = append(m.nodes, n)
			return err
		case graphName:
			m.name = string(f.data)
		case graphTensor:
			if len(m.tensors) == maxNodes {
				return fmt.Errorf("%w: more than %d initialisers", errWire, maxNodes)
			}
			t, err := readTensor(f.data)
			m.tensors = append(m.tensors, t)
			return err
		case graphInput:
			v, err := readValue(f.data)
			m.inputs = append(m.inputs, v)
			return err
		case graphOutput:
			v, err := readValue(f.data)
			m.outputs = append(m.outputs, v)
			return err
		}
		return nil
	})
}

func readNode(data []byte) (node, error) {
	var n node
	err := fields(data, func(f field) error {
		switch f.id {
		case nodeInput:
			n.inputs = append(n.inputs, string(f.data))
		case nodeOutput:
			n.outputs = append(n.outputs, string(f.data))
		case nodeName:
			n.name = string(f.data)
		case nodeOp:
			n.op = string(f.data)
		case nodeAttr:
			n.attrs = append(n.attrs, f.data)
		case nodeDomain:
			if len(f.data) > 0 {
				return fmt.Errorf("%w: operator of domain %q", errWire, f.data)
			}
		}
		return nil
	})
	return n, err
}

func readTensor(data []byte) (tensor, error) {
	var t tensor
	var elem uint64
	var raw []byte
	err := fields(data, func(f field) (err error) {
		switch f.id {
		case tensorDims:
			t.dims, err = appendInts(t.dims, f)
		case tensorType:
			elem = f.num
		case tensorFloats:
			raw = append(raw, f.data...)
		case tensorInt64s:
			t.ints, err = appendInts(t.ints, f)
		case tensorName:
			t.name = string(f.data)
		case tensorRaw:
			raw = f.data
		case tensorLocation:
			if f.num != 0 {
				err = fmt.Errorf("%w: tensor data outside the file", errWire)
			}
		}
		return err
	})
	if err != nil {
		return tensor{}, err
	}
	switch {
	case elem == elemFloat && len(raw)%4 == 0:
		t.floats = make([]float32, len(raw)/4)
		for i := range t.floats {
			t.floats[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case elem == elemInt64 && len(raw)%8 == 0:
		for i := 0; i < len(raw); i += 8 {
			t.ints = append(t.ints, int64(binary.LittleEndian.Uint64(raw[i:])))
		}
	case elem == elemInt8:
		t.small = make([]int8, len(raw))
		for i, b := range raw {
			t.small[i] = int8(b)
		}
	default:
		return tensor{}, fmt.Errorf("%w: tensor %q of element type %d with %d bytes", errWire, t.name, elem, len(raw))
	}
	if n, ok := volume(t.dims); !ok || n != len(t.floats)+len(t.ints)+len(t.small) {
		return tensor{}, fmt.Errorf("%w: tensor %q has another number of elements than its shape %v", errWire, t.name, t.dims)
	}
	return t, nil
}

// appendInts appends a repeated integer field, packed or not.
func appendInts(dst []int64, f field) ([]int64, error) {
	if f.kind == protowire.VarintType {
		return append(dst, int64(f.num)), nil
	}
	for b := f.data; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, fmt.Errorf("%w: %w", errWire, protowire.ParseError(n))
		}
		dst, b = append(dst, int64(v)), b[n:]
	}
	return dst, nil
}

// volume returns the product of dims, or false if a dimension or the product is
// out of bounds.
func volume(dims []int64) (int, bool) {
	n := int64(1)
	for _, d := range dims {
		if d < 0 || d > maxModelBytes || n*d > maxModelBytes {
			return 0, false
		}
		n *= d
	}
	return int(n), len(dims) <= maxRank
}

func readValue(data []byte) (value, error) {
	var v value
	err := fields(data, func(f field) error {
		switch f.id {
		case valueName:
			v.name = string(f.data)
		case valueType:
			return fields(f.data, func(f field) error {
				if f.id != typeTensor {
					return fmt.Errorf("%w: a value that is not a tensor", errWire)
				}
				return v.readTensorType(f.data)
			})
		}
		return nil
	})
	return v, err
}

func (v *value) readTensorType(data []byte) error {
	return fields(data, func(f field) error {
		switch {
		case f.id == typeElem && f.num != elemFloat:
			return fmt.Errorf("%w: value of element type %d", errWire, f.num)
		case f.id == typeShape:
			return fields(f.data, func(f field) error {
				d := int64(-1)
				err := fields(f.data, func(f field) error {
					if f.id == dimValue {
						d = int64(f.num)
					}
					return nil
				})
				v.dims = append(v.dims, d)
				return err
			})
		}
		return nil
	})
}
