package job

import (
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/shard/seal"
)

// CasesMax is the most cases of a gallery.
const CasesMax = DifferentMax

// CaseState says whether a case is open, and how it was closed.
type CaseState uint8

// The states of a case. The numbers are stored.
const (
	CaseOpen CaseState = iota
	// CaseSame and CaseDifferent: all verdicts say so. CaseDisputed: two people disagree.
	CaseSame
	CaseDifferent
	CaseDisputed
	// CaseExpired: the verdicts did not come in time.
	CaseExpired
	// CaseErased: the subject is gone. Nothing that names it is left.
	CaseErased
)

// Verdict is one person's opinion of a case.
type Verdict struct {
	// Same reports that both photos show one person.
	Same bool `cbor:"1,keyasint,omitempty"`
	// Holder names the holder of the access key, or is empty.
	Holder string `cbor:"2,keyasint,omitempty"`
	// Time is in milliseconds since 1970, as are all times of a case.
	Time int64 `cbor:"3,keyasint"`
}

// Case is a verification with a score in the review band of its application.
type Case struct {
	ID          id.UUID        `cbor:"1,keyasint"`
	State       CaseState      `cbor:"2,keyasint,omitempty"`
	Application id.Application `cbor:"3,keyasint"`
	Subject     id.Subject     `cbor:"4,keyasint,omitzero"`
	Score       int            `cbor:"5,keyasint,omitempty"`
	// Threshold is the application's, at which the subject would have been verified.
	Threshold int `cbor:"6,keyasint,omitempty"`
	// Reference is the client's name of the probe, or empty.
	Reference string `cbor:"7,keyasint,omitempty"`
	Created   int64  `cbor:"8,keyasint"`
	// Expires is when an open case expires, and Closed when the case was closed.
	Expires int64 `cbor:"9,keyasint,omitempty"`
	Closed  int64 `cbor:"10,keyasint,omitempty"`
	// Needed is how many verdicts close the case, 1 or 2.
	Needed   int       `cbor:"11,keyasint,omitempty"`
	Verdicts []Verdict `cbor:"12,keyasint,omitempty"`
	// Probe stands for the probe of an open case: a MAC of its template, or zero. Nobody can read it back.
	Probe [16]byte `cbor:"13,keyasint,omitzero"`
}

// At returns the case as it is at a time: an open one may have expired.
func (c Case) At(now int64) Case {
	if c.State == CaseOpen && now >= c.Expires {
		c.State, c.Closed, c.Probe = CaseExpired, c.Expires, [16]byte{}
	}
	return c
}

// Decided returns the case with one more verdict, which may close it.
func (c Case) Decided(v Verdict) Case {
	c.Verdicts = append(slices.Clip(c.Verdicts), v)
	if len(c.Verdicts) < c.Needed {
		return c
	}
	c.Closed, c.State, c.Probe = v.Time, CaseDifferent, [16]byte{}
	if v.Same {
		c.State = CaseSame
	}
	for _, other := range c.Verdicts {
		if other.Same != v.Same {
			c.State = CaseDisputed
		}
	}
	return c
}

// Erased returns what is left of the case of a subject that is gone at a time.
func (c Case) Erased(now int64) Case {
	return Case{ID: c.ID, State: CaseErased, Application: c.Application, Created: c.Created, Closed: now}
}

// SealCase encrypts a case. It isn't bound to a batch or a place in it, so that a backup can bring it into
// another one.
func SealCase(key *seal.Key, g id.Gallery, generation uint32, c *Case) []byte {
	return sealText(key, Name{Gallery: g, Generation: generation}, 0, "case", c)
}

// OpenCase decrypts a case that SealCase encrypted. The error wraps seal.ErrOpen or ErrText.
func OpenCase(key *seal.Key, g id.Gallery, generation uint32, sealed []byte) (Case, error) {
	c, err := openText[Case](key, Name{Gallery: g, Generation: generation}, 0, "case", sealed, SealedMax)
	if err != nil {
		return c, fmt.Errorf("a case of gallery %s: %w", g, err)
	}
	return c, nil
}
