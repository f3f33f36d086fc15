package onnx

import (
	"encoding/binary"
	"errors"
	"slices"
)

// An ONNX file is a message of protobuf (onnx.proto). These are the numbers of its fields.
const (
	modelGraph       = 7
	graphInitializer = 5
	graphInput       = 11
	graphOutput      = 12
	tensorName       = 8
	valueName        = 1
)

// The kinds of fields in protobuf.
const (
	kindVarint  = 0
	kindFixed64 = 1
	kindBytes   = 2
	kindFixed32 = 5
)

var errFile = errors.New("it is no ONNX file")

// portsOf returns the names of a network's inputs and outputs. Weights with an initial value are no
// inputs. ONNX Runtime would need a session to tell, and optimise the network twice.
func portsOf(network []byte) (inputs, outputs []string, err error) {
	var weights []string
	graph, err := first(network, modelGraph)
	if err != nil {
		return nil, nil, err
	}
	named := map[uint64]struct {
		list *[]string
		name uint64
	}{graphInitializer: {&weights, tensorName}, graphInput: {&inputs, valueName}, graphOutput: {&outputs, valueName}}
	err = fields(graph, func(number uint64, value []byte) error {
		to, ok := named[number]
		if !ok {
			return nil
		}
		name, err := first(value, to.name)
		*to.list = append(*to.list, string(name))
		return err
	})
	inputs = slices.DeleteFunc(inputs, func(name string) bool { return slices.Contains(weights, name) })
	return inputs, outputs, err
}

// first returns the first field of that number, or nil.
func first(message []byte, number uint64) (value []byte, err error) {
	err = fields(message, func(n uint64, v []byte) error {
		if n == number && value == nil {
			value = v
		}
		return nil
	})
	return value, err
}

// fields calls each for the fields of a message that are texts, bytes or messages.
func fields(message []byte, each func(number uint64, value []byte) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return errFile
		}
		message = message[n:]
		size := uint64(0)
		switch tag & 7 {
		case kindFixed64:
			size = 8
		case kindFixed32:
			size = 4
		case kindVarint, kindBytes:
			v, n := binary.Uvarint(message)
			if n <= 0 {
				return errFile
			}
			message = message[n:]
			if tag&7 == kindBytes {
				size = v
			}
		default:
			return errFile
		}
		if size > uint64(len(message)) {
			return errFile
		}
		if tag&7 == kindBytes {
			if err := each(tag>>3, message[:size]); err != nil {
				return err
			}
		}
		message = message[size:]
	}
	return nil
}
