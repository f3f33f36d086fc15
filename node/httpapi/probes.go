package httpapi

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"facet/router"
)

// probe reads the photos of a probe: exactly one of probe and, but in version 1, probes. Each photo
// beyond the first counts as a request of its own.
func (c *call) probe(o object) (router.Probe, error) {
	_, one := o["probe"]
	raw, several := o["probes"]
	switch {
	case !several || c.version == v1:
		image, err := o.image("probe")
		if err != nil {
			return nil, err
		}
		return router.Probe{image}, nil
	case one:
		return nil, invalid("", "Exactly one of probe and probes is required.")
	}
	photos, err := probesOf(raw)
	if err != nil {
		return nil, err
	}
	return photos, c.pay(charge{n: len(photos) - 1, taken: 1})
}

// probesOf reads an array of base64 images. It decodes them in place, as object.image does.
func probesOf(raw jsontext.Value) (router.Probe, error) {
	wrong := invalid("", fmt.Sprintf("probes must be an array of %d to %d base64 images.", router.ProbesMin, router.ProbesMax))
	if raw.Kind() != '[' {
		return nil, wrong
	}
	texts, err := elements(raw, router.ProbesMax)
	if err != nil {
		return nil, err
	}
	if n := len(texts); n < router.ProbesMin || n > router.ProbesMax {
		return nil, wrong
	}
	photos := make(router.Probe, len(texts))
	for i, text := range texts {
		if photos[i], err = imageOf(fmt.Sprintf("Photo %d of probes", i+1), text); err != nil {
			return nil, err
		}
	}
	return photos, nil
}

// elements returns the elements of an array, as parts of it. It stops after most+1.
func elements(array jsontext.Value, most int) (list []jsontext.Value, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(array)) // a buffer is read in place: no copy of a photo stays
	if _, err := d.ReadToken(); err != nil {
		return nil, malformed(err)
	}
	for d.PeekKind() != ']' && len(list) <= most {
		value, err := d.ReadValue()
		if err != nil {
			return nil, malformed(err)
		}
		end := d.InputOffset()
		list = append(list, array[end-int64(len(value)):end])
	}
	return list, nil
}
