package command

import (
	"errors"
	"testing"

	"facet/internal/codec"
	"facet/internal/must"
)

type (
	adder struct{ sum int }
	add   struct {
		N int `cbor:"1,keyasint"`
	}
	double struct{}
	sum    struct {
		Sum int `cbor:"1,keyasint"`
	}
)

var (
	addOp    = Op[add, sum]{Code: 2, Version: 1}
	doubleOp = Op[double, sum]{Code: 5, Version: 3, AnswersAs: 2}
	table    = [...]Row[*adder]{2: Does(addOp, add.apply), 5: Does(doubleOp, double.apply)}
)

func (c add) apply(m *adder) sum {
	m.sum += c.N
	return sum{m.sum}
}

func (double) apply(m *adder) sum {
	m.sum *= 2
	return sum{m.sum}
}

func TestCommandIsAppliedByItsRow(t *testing.T) {
	t.Parallel()
	m := &adder{}
	f := func(cmd []byte, head codec.Head, answer func([]byte) (sum, error), want int) {
		t.Helper()
		raw, err := apply(table[:], m, cmd)
		must.Do(t, err)
		if raw[0] != head.Code || raw[1] != head.Version {
			t.Errorf("the answer begins with %x, want %x", raw[:2], head)
		}
		if got, err := answer(raw); err != nil || got.Sum != want {
			t.Errorf("got %d, %v, want %d", got.Sum, err, want)
		}
	}
	if c, err := addOp.Decode(addOp.Encode(add{3})); err != nil || c.N != 3 {
		t.Errorf("decoded %v, %v", c, err)
	}
	if _, err := addOp.Decode(doubleOp.Encode(double{})); !errors.Is(err, codec.ErrMalformed) {
		t.Errorf("another command decodes: %v", err)
	}
	f(addOp.Encode(add{3}), codec.Head{Code: 0x42, Version: 1}, addOp.Answer, 3)
	f(addOp.Encode(add{4}), codec.Head{Code: 0x42, Version: 1}, addOp.Answer, 7)
	f(doubleOp.Encode(double{}), codec.Head{Code: 0x42, Version: 3}, doubleOp.Answer, 14)
}

func TestUnreadableCommandHasNoEffect(t *testing.T) {
	t.Parallel()
	m := &adder{sum: 1}
	f := func(name string, cmd []byte, want error) {
		t.Helper()
		if answer, err := apply(table[:], m, cmd); answer != nil || !errors.Is(err, want) || m.sum != 1 {
			t.Errorf("%s: answer %x, %v, sum %d; want the error %v", name, answer, err, m.sum, want)
		}
	}
	one := addOp.Encode(add{1})
	f("no head", one[:1], codec.ErrMalformed)
	f("cut", one[:3], codec.ErrMalformed)
	f("another version", append([]byte{2, 2}, one[2:]...), codec.ErrMalformed)
	f("a code between", []byte{3, 1, 0xa0}, codec.ErrMalformed)
	f("a code beyond", []byte{6, 1, 0xa0}, codec.ErrMalformed)
	f("skippable", []byte{codec.Skippable | 2, 1, 0xff}, nil)
}
