// Package portrait decides which face of a photo is meant where a request wants one face. The router
// and the measurements of `facet bench` share it.
//
// A face in the background does not count: it is vague, or small beside the largest. When two faces
// count, Refuse takes none. Dominant takes a face if it is clearly the one meant, beside each of the
// others, vague ones included: a vague face may be the person who is meant.
//
//	    middle line
//	         │
//	┌────────┼───────┐              The face is whole, and it is on the middle line of the image
//	│      A │       │  ┌────┐      or nearer to it than the other. And
//	│        │       │  │ B  │      - the other has at most half its side, or
//	│        │       │  └────┘      - it is on the line, and the other has at most .8 of its side,
//	│        │       │              - or is cut by the border, with at most 1.1 of its side,
//	└────────┼───────┘              - or has at most half its quality and is not larger.
//	         │
//
// The middle line goes through the middle of the image, from top to bottom as most nearly the face
// stands, so a photo on its side has the same answer. The rule reads sizes, places and the ratio of two qualities,
// nothing that belongs to one pack of models. docs/decisions/0036-dominant.md has the measurements.
package portrait
