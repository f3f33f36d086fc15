package httpapi

import (
	"facet/engine"
	"facet/internal/answers"
)

// wireMeasures returns the wire form of m.
func wireMeasures(m *engine.Measures) *answers.Measures {
	wire := func(m engine.Measure) answers.Measure {
		return answers.Measure{Native: decimal(m.Native), Component: decimal(m.Component)}
	}
	return &answers.Measures{
		LuminanceMean:     wire(m.LuminanceMean),
		LuminanceVariance: wire(m.LuminanceVariance),
		UnderExposure:     wire(m.UnderExposure),
		OverExposure:      wire(m.OverExposure),
		DynamicRange:      wire(m.DynamicRange),
		Evenness:          wire(m.Evenness),
		Sharpness:         wire(m.Sharpness),
		EyeDistance:       wire(m.EyeDistance),
		HeadSize:          wire(m.HeadSize),
		Left:              wire(m.Left),
		Right:             wire(m.Right),
		Above:             wire(m.Above),
		Below:             wire(m.Below),
		Yaw:               wire(m.Yaw),
		Pitch:             wire(m.Pitch),
		Roll:              wire(m.Roll),
	}
}
