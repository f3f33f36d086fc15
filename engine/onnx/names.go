package onnx

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
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

// portsOf returns the names of a network's inputs and outputs. Weights with an initial value are no
// inputs. ONNX Runtime would need a session to tell, and optimise the network twice.
func portsOf(network []byte) (inputs, outputs []string, err error) {
	var weights []string
	graph, err := first(network, modelGraph)
	if err != nil {
		return nil, nil, err
	}
	lists := map[protowire.Number]struct {
		list *[]string
		name protowire.Number
	}{graphInitializer: {&weights, tensorName}, graphInput: {&inputs, valueName}, graphOutput: {&outputs, valueName}}
	err = fields(graph, func(number protowire.Number, value []byte) error {
		to, ok := lists[number]
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
func first(message []byte, number protowire.Number) (value []byte, err error) {
	err = fields(message, func(n protowire.Number, v []byte) error {
		if n == number && value == nil {
			value = v
		}
		return nil
	})
	return value, err
}

// fields calls each for the fields of a message that are texts, bytes or messages.
func fields(message []byte, each func(number protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		size := tag
		if tag >= 0 {
			size = protowire.ConsumeFieldValue(number, kind, message[tag:])
		}
		if size < 0 {
			return fmt.Errorf("it is no ONNX file: %w", protowire.ParseError(size))
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[tag:])
			if err := each(number, value); err != nil {
				return err
			}
		}
		message = message[tag+size:]
	}
	return nil
}
