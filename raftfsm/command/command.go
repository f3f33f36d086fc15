package command

import (
	"fmt"
	"reflect"

	"facet/internal/codec"
)

// answerBit is set in the code of an answer. The other bits are those of the command.
const answerBit = 0x40

// Op names one command: C is proposed, A is the answer. Code and Version are stored
// before each command in the log. They are never reused.
type Op[C, A any] struct {
	Code, Version byte
	// AnswersAs is the code of the command whose answer this one shares. Zero is
	// the command's own code.
	AnswersAs byte
}

// Encode returns the bytes to propose.
func (o Op[C, A]) Encode(c C) []byte { return codec.Encode(o.head(), c) }

// Decode reads an encoded command. Its error wraps codec.ErrMalformed if b is
// another command or none.
func (o Op[C, A]) Decode(b []byte) (C, error) {
	var c C
	err := codec.Decode(b, o.head(), &c)
	return c, err
}

// Answer reads the answer to the command. Its error wraps codec.ErrMalformed.
func (o Op[C, A]) Answer(b []byte) (A, error) {
	var a A
	err := codec.Decode(b, o.answerHead(), &a)
	return a, err
}

func (o Op[C, A]) head() codec.Head { return codec.Head{Code: o.Code, Version: o.Version} }

func (o Op[C, A]) answerHead() codec.Head {
	h := o.head()
	if o.AnswersAs != 0 {
		h.Code = o.AnswersAs
	}
	h.Code |= answerBit
	return h
}

// Row is one command in the table of a machine M. The zero Row is a code that no
// command has.
type Row[M any] struct {
	// Head stands before the command's bytes, Type is the command's Go type.
	Head  codec.Head
	Type  reflect.Type
	apply func(m M, cmd codec.Message) ([]byte, error)
}

// Does returns the row of op. The method effect applies the command to the machine
// and returns the answer.
func Does[M, C, A any](op Op[C, A], effect func(C, M) A) Row[M] {
	apply := func(m M, cmd codec.Message) ([]byte, error) {
		var c C
		if err := cmd.Decode(op.head(), &c); err != nil {
			return nil, err
		}
		return codec.Encode(op.answerHead(), effect(c, m)), nil
	}
	return Row[M]{op.head(), reflect.TypeFor[C](), apply}
}

// Apply applies the encoded command at an index of the log to m and returns the encoded
// answer. table is indexed by code. An empty command, and an unknown one that
// codec.Skippable marks, have no effect and no answer. Apply panics on any other command
// that it can't decode: this software never proposes one.
func Apply[M any](table []Row[M], m M, index uint64, cmd []byte) []byte {
	if len(cmd) == 0 {
		return nil
	}
	answer, err := apply(table, m, cmd)
	if err != nil {
		panic(fmt.Sprintf("bug: command at index %d: %v", index, err))
	}
	return answer
}

func apply[M any](table []Row[M], m M, cmd []byte) ([]byte, error) {
	message, err := codec.Split(cmd)
	if err != nil {
		return nil, err
	}
	if int(message.Code) < len(table) && table[message.Code].apply != nil {
		return table[message.Code].apply(m, message)
	}
	if message.Code&codec.Skippable != 0 {
		return nil, nil
	}
	return nil, fmt.Errorf("%w: unknown command %d", codec.ErrMalformed, message.Code)
}
