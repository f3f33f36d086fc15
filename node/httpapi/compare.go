package httpapi

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fasthttp"

	"facet/internal/answers"
	"facet/router"
	"facet/router/faces"
)

// scoreTextMax is the most bytes of a score and its comma.
const scoreTextMax = 5

// postCompare serves POST face/compare: body faces. Each photo beyond the first counts as a request
// of its own.
var postCompare = reads(readComparison, func(ctx context.Context, c *call, r Reader, faces []router.CompareFace) (router.Comparison, error) {
	return r.Compare(ctx, c.key.Tenant, faces)
}, func(c *call, _ []router.CompareFace, compared router.Comparison) answer {
	return answer{fasthttp.StatusOK, c.wireComparison(compared)}
}, says[[]router.CompareFace, router.Comparison]{asked: func(t *trail, faces []router.CompareFace) { t.photos = photosOf(faces) }})

func readComparison(_ context.Context, c *call) ([]router.CompareFace, error) {
	o, err := readObject(c.body.bytes, "faces")
	if err != nil {
		return nil, err
	}
	raw, ok := o["faces"]
	if !ok {
		return nil, missing("faces")
	}
	faces, photos, err := compareFaces(raw)
	if err != nil {
		return nil, err
	}
	if photos > 1 {
		if err := c.pay(charge{n: photos - 1, taken: 1}); err != nil {
			return faces, err
		}
	}
	if !c.reserve(scoreTextMax * len(faces) * (len(faces) - 1) / 2) {
		return faces, busy()
	}
	return faces, nil
}

// photosOf returns the photos among faces.
func photosOf(faces []router.CompareFace) (photos router.Probe) {
	for _, f := range faces {
		if f.Image != nil {
			photos = append(photos, f.Image)
		}
	}
	return photos
}

// reserve takes memory for an answer from the budget of bodies. It returns false when the budget is
// spent.
func (c *call) reserve(size int) bool {
	if !c.server.bodies.Take(c.body.payer.tenant, int64(size)) {
		return false
	}
	c.body.taken += size
	return true
}

// compareFaces reads the photos and tokens of a comparison, and counts the photos.
func compareFaces(raw jsontext.Value) (faces []router.CompareFace, photos int, err error) {
	wrong := invalid("", fmt.Sprintf(`faces must be an array of 1 to %d objects, each with a "face" or a "token".`, router.CompareMax))
	if raw.Kind() != '[' {
		return nil, 0, wrong
	}
	texts, err := elements(raw, router.CompareMax)
	if err != nil {
		return nil, 0, err
	}
	if n := len(texts); n < 1 || n > router.CompareMax {
		return nil, 0, wrong
	}
	faces = make([]router.CompareFace, len(texts))
	for i, text := range texts {
		if text.Kind() != '{' {
			return nil, 0, wrong
		}
		if faces[i], err = compareFace(i, text); err != nil {
			return nil, 0, err
		}
		if faces[i].Image != nil {
			photos++
		}
	}
	if photos > router.ComparePhotosMax {
		return nil, 0, invalid("", fmt.Sprintf("faces has %d photos; at most %d are permitted. Send the others in further requests, with the tokens of these.",
			photos, router.ComparePhotosMax))
	}
	return faces, photos, nil
}

// compareFace reads one of faces.
func compareFace(i int, text jsontext.Value) (f router.CompareFace, err error) {
	o, err := readObject(text, "face", "token")
	if err != nil {
		return f, err
	}
	raw, photo := o["face"]
	_, token := o["token"]
	switch {
	case photo == token:
		return f, invalid("", fmt.Sprintf("The entry faces[%d] must have exactly one of face and token.", i))
	case photo:
		f.Image, err = imageOf(fmt.Sprintf("The face of faces[%d]", i), raw)
	default:
		f.Token, _, err = o.text("token", faces.FaceTokenMax)
	}
	return f, err
}

// wireComparison returns the wire form of the answer to a comparison.
func (c *call) wireComparison(of router.Comparison) answers.Comparison {
	text := answers.Comparison{Faces: make([]answers.ComparedFace, len(of.Faces))}
	for i, f := range of.Faces {
		switch {
		case f.Err != nil:
			refusal, _ := failureOf(f.Err, c.version, c.requestID)
			why := refusal.body
			text.Faces[i].Error = &answers.FaceError{Message: why.Message, Code: why.ErrorCode, Type: why.ErrorType, Reason: why.Reason}
		case f.Token != "":
			attributes := wireAttributes(f.Attributes)
			text.Faces[i] = answers.ComparedFace{Attributes: &attributes, Token: f.Token}
		}
	}
	if of.Scores != nil {
		text.Scores = wireScores(of.Scores)
	}
	if !of.Expires.IsZero() {
		text.Expires = wireTime(of.Expires)
	}
	return text
}

// wireScores returns an array of the scores. A missing one is null.
func wireScores(scores []int16) jsontext.Value {
	text := append(make([]byte, 0, scoreTextMax*len(scores)+2), '[')
	for i, s := range scores {
		if i > 0 {
			text = append(text, ',')
		}
		if s == router.NoScore {
			text = append(text, "null"...)
		} else {
			text = strconv.AppendInt(text, int64(s), 10)
		}
	}
	return append(text, ']')
}
