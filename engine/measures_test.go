package engine_test

import (
	"image"
	"math/rand/v2"
	"testing"

	"facet/engine"
)

// TestMeasuresFollowTheirCause spoils one portrait and compares the measures that this concerns.
func TestMeasuresFollowTheirCause(t *testing.T) {
	t.Parallel()
	im, good := closeUp(t, "face_recognition/obama.jpg")
	a, r := &good.Attributes, rand.New(rand.NewPCG(1, 2))
	if m := &good.Measures; m.Roll.Native != a.Roll || m.Yaw.Native != a.Pan || m.Pitch.Native != a.Tilt {
		t.Errorf("angles %v, %v, %v, want %v, %v, %v", m.Roll, m.Yaw, m.Pitch, a.Roll, a.Pan, a.Tilt)
	}
	// The left half of the face in shadow.
	middle := int(a.RightEye.X+a.LeftEye.X) / 2
	shadow := image.NewRGBA(im.Rect)
	copy(shadow.Pix, im.Pix)
	for i := range shadow.Pix {
		if i%4 != 3 && i/4%im.Rect.Dx() < middle {
			shadow.Pix[i] /= 3
		}
	}
	dark := shaded(im, .2, 0)
	half := redrawn(im, 150, 180, func(x, y float64) (float64, float64) { return 2 * x, 2 * y })
	left := redrawn(im, 220, 360, func(x, y float64) (float64, float64) { return x + 80, y })
	seen := map[*image.RGBA]engine.Face{}
	for _, c := range []struct {
		name    string
		spoilt  *image.RGBA
		measure func(m *engine.Measures) engine.Measure
		least   float32 // by which the component falls
	}{
		{"blurred", smeared(im, square(7)), func(m *engine.Measures) engine.Measure { return m.Sharpness }, 40},
		{"moved", movedBy(.35)(im, a, r), func(m *engine.Measures) engine.Measure { return m.Sharpness }, 30},
		{"dark", dark, func(m *engine.Measures) engine.Measure { return m.LuminanceMean }, 50},
		{"dark", dark, func(m *engine.Measures) engine.Measure { return m.DynamicRange }, 15},
		{"nearly black", shaded(im, .12, 0), func(m *engine.Measures) engine.Measure { return m.UnderExposure }, 20},
		{"glaring", shaded(im, 2, 60), func(m *engine.Measures) engine.Measure { return m.OverExposure }, 80},
		{"flat", shaded(im, .2, 100), func(m *engine.Measures) engine.Measure { return m.LuminanceVariance }, 50},
		{"half in shadow", shadow, func(m *engine.Measures) engine.Measure { return m.Evenness }, 20},
		{"half as large", half, func(m *engine.Measures) engine.Measure { return m.EyeDistance }, 20},
		{"near to the left border", left, func(m *engine.Measures) engine.Measure { return m.Left }, 60},
	} {
		bad, ok := seen[c.spoilt]
		if !ok {
			if bad, ok = only(t, c.spoilt); !ok {
				t.Errorf("%s: no face", c.name)
				continue
			}
			seen[c.spoilt] = bad
		}
		was, is := c.measure(&good.Measures), c.measure(&bad.Measures)
		if is.Component > was.Component-c.least {
			t.Errorf("%s: %+v, was %+v", c.name, is, was)
		}
	}
}
