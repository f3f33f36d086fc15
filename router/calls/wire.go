package calls

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// Bounds of what a peer's message makes the decoder do. Fields that a peer of a
// later version added are passed over.
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
