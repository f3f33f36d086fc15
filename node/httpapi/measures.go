package httpapi

import "facet/engine"

// measureBody is one measure of a face.
type measureBody struct {
	Native    string `json:"native"`
	Component string `json:"component"`
}

// measuresBody has the measures of a face, by the names of ISO/IEC 29794-5.
type measuresBody struct {
	LuminanceMean     measureBody `json:"luminanceMean"`
	LuminanceVariance measureBody `json:"luminanceVariance"`
	UnderExposure     measureBody `json:"underExposurePrevention"`
	OverExposure      measureBody `json:"overExposurePrevention"`
	DynamicRange      measureBody `json:"dynamicRange"`
	Evenness          measureBody `json:"illuminationUniformity"`
	Sharpness         measureBody `json:"sharpness"`
	EyeDistance       measureBody `json:"interEyeDistance"`
	HeadSize          measureBody `json:"headSize"`
	Left              measureBody `json:"leftwardCrop"`
	Right             measureBody `json:"rightwardCrop"`
	Above             measureBody `json:"marginAbove"`
	Below             measureBody `json:"marginBelow"`
	Yaw               measureBody `json:"headPoseYaw"`
	Pitch             measureBody `json:"headPosePitch"`
	Roll              measureBody `json:"headPoseRoll"`
}

func wireMeasures(m *engine.Measures) *measuresBody {
	wire := func(m engine.Measure) measureBody { return measureBody{decimal(m.Native), decimal(m.Component)} }
	return &measuresBody{
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
