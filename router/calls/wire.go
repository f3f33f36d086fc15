package calls

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// Bounds of a peer's message. The decoder ignores unknown fields, which a peer of a
// later version may send.
const (
	wireArrayMax = 1 << 20
	wireMapMax   = 64
	wireNestMax  = 8
)

var (
	wireEnc = must(cbor.EncOptions{Sort: cbor.SortCoreDeterministic}.EncMode())
	wireDec = must(cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxArrayElements: wireArrayMax,
		MaxMapPairs:      wireMapMax,
		MaxNestedLevels:  wireNestMax,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("bug: CBOR options: %v", err))
	}
	return v
}
