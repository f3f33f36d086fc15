package answers

// Point is a place in an image, in pixels.
type Point struct {
	X Pixel `json:"x"`
	Y Pixel `json:"y"`
}

// Rectangle is a part of an image, in pixels.
type Rectangle struct {
	Left   Pixel `json:"left"`
	Top    Pixel `json:"top"`
	Right  Pixel `json:"right"`
	Bottom Pixel `json:"bottom"`
}

// Attributes are what is known of a face besides its template. Positions are in pixels of the upright image, angles
// in degrees. Right and left are the person's own.
type Attributes struct {
	FaceArea       Rectangle `json:"faceArea"`
	HeadArea       Rectangle `json:"headArea"`
	RightEyeCenter Point     `json:"rightEyeCenter"`
	LeftEyeCenter  Point     `json:"leftEyeCenter"`
	// Likeness to a face.
	FaceScore Decimal `json:"faceScore"`
	// How much it is seen from the front.
	FrontalFaceScore Decimal `json:"frontalFaceScore"`
	// How well it will compare.
	FaceQualityScore Decimal `json:"faceQualityScore"`
	FaceRoll         Decimal `json:"faceRoll"`
	FacePan          Decimal `json:"facePan"`
	FaceTilt         Decimal `json:"faceTilt"`
}

// IgnoredFace is a face on a photo beside the one that was taken.
//
//facet:ext
type IgnoredFace struct {
	FaceArea         Rectangle `json:"faceArea"`
	FaceQualityScore Decimal   `json:"faceQualityScore"`
}

// Measure is a native measure, and the quality component made of it, a whole number from 0 (bad) to 100.
//
//facet:ext
type Measure struct {
	Native    Decimal `json:"native"`
	Component Decimal `json:"component"`
}

// Measures are how a face was photographed, by the components of ISO/IEC 29794-5 that need no further model.
//
//facet:ext
type Measures struct {
	LuminanceMean     Measure `json:"luminanceMean"`
	LuminanceVariance Measure `json:"luminanceVariance"`
	UnderExposure     Measure `json:"underExposurePrevention"`
	OverExposure      Measure `json:"overExposurePrevention"`
	DynamicRange      Measure `json:"dynamicRange"`
	Evenness          Measure `json:"illuminationUniformity"`
	Sharpness         Measure `json:"sharpness"`
	EyeDistance       Measure `json:"interEyeDistance"`
	HeadSize          Measure `json:"headSize"`
	Left              Measure `json:"leftwardCrop"`
	Right             Measure `json:"rightwardCrop"`
	Above             Measure `json:"marginAbove"`
	Below             Measure `json:"marginBelow"`
	Yaw               Measure `json:"headPoseYaw"`
	Pitch             Measure `json:"headPosePitch"`
	Roll              Measure `json:"headPoseRoll"`
}

// SeenFace is a face of a photo.
//
//facet:schema Face
type SeenFace struct {
	Attributes Attributes `json:"attributes"`
	// How the face was photographed, by the components of ISO/IEC 29794-5, for example "sharpness". Absent if not asked
	// for.
	Measures *Measures `json:"measures,omitzero" schema:"ext"`
	// Why an enrolment would refuse the face. Absent if the measures were not asked for.
	Defects []string `json:"defects,omitzero" schema:"ext max=6 enum=FaceUpsideDown|FaceCut|FaceTooDark|EyesCovered|MouthCovered|FaceMoved"`
}

// Faces are the faces of a photo, the largest first.
//
//facet:frame
type Faces struct {
	Faces []SeenFace `json:"faces" schema:"min=1 max=20"`
}

// Probed is one photo of several probes.
//
//facet:ext
type Probed struct {
	Attributes Attributes `json:"attributes"`
	// Other faces on the photo, the largest first. Absent unless multipleFaces of the application is dominant and the
	// photo has several faces.
	IgnoredFaces []IgnoredFace `json:"ignoredFaces,omitzero" schema:"min=1 max=19"`
}

// Verified is a subject or a photo that a probe shows: the score reached the application's verifyThreshold.
type Verified struct {
	// Absent if two photos were compared.
	ID    ID    `json:"id,omitzero"`
	Score Score `json:"score"`
	// The faces of several photos, in the order of the request. Absent if the probe is one photo.
	Probes []Probed `json:"probes,omitzero" schema:"ext min=2 max=10"`
	Note   `json:",inline"`
	// Other faces on the photo, the largest first. Absent unless multipleFaces of the application is dominant and the
	// photo has several faces.
	IgnoredFaces []IgnoredFace `json:"ignoredFaces,omitzero" schema:"ext min=1 max=19"`
}

// FaceError is why a photo has no face to compare, as in the answer to a verification of this photo. With the reason
// NotDone the node had no time: send the photo again.
//
//facet:ext
type FaceError struct {
	Message string `json:"message"`
	Code    int    `json:"errorCode,omitzero"`
	Type    string `json:"errorType,omitzero"`
	Reason  string `json:"reason,omitzero"`
}

// ComparedFace is a face of a comparison. A photo has attributes and a token, or an error; a token has nothing.
//
//facet:ext
type ComparedFace struct {
	Attributes *Attributes `json:"attributes,omitzero"`
	// Stands for the photo in further comparisons. Only this cluster opens it, for the same tenant, for 30 minutes.
	Token FaceToken  `json:"token,omitzero"`
	Error *FaceError `json:"error,omitzero"`
}

// Comparison is the answer to a comparison of faces.
//
//facet:schema Compared
//facet:ext
type Comparison struct {
	// In the order of the request.
	Faces []ComparedFace `json:"faces" schema:"min=1 max=1000"`
	// Each face with each one before it, row by row: (1,0), (2,0), (2,1), (3,0) and so on. A pair without two faces has
	// no score. Absent if the node had no time: send the tokens.
	Scores Scores `json:"scores,omitzero"`
	// Until when the tokens of this answer are taken. Absent without one.
	Expires Time `json:"expires,omitzero"`
}

// Check is a check of a list. One node keeps it in memory until it is ended, for ten minutes without a row, or until the
// node stops.
//
//facet:ext
type Check struct {
	ID ID `json:"id"`
	// The most rows with a face.
	RowsMax int `json:"rowsMax"`
}

// ScoredRow is a row of a check and its similarity to another one.
//
//facet:ext
type ScoredRow struct {
	Row   int   `json:"row"`
	Score Score `json:"score"`
}

// CheckedRow is what the registration of a row would do.
//
//facet:schema Checked
//facet:ext
type CheckedRow struct {
	Row int `json:"row"`
	// Other rows of the check so far that show the same person, best first.
	Rows []ScoredRow `json:"rows" schema:"max=50"`
	// Enrolled subjects that the photo shows, best first, each with its best event.
	Candidates []Candidate `json:"candidates" schema:"max=10"`
	// The subject that has the external id. Absent without one.
	Known      ID         `json:"known,omitzero"`
	Attributes Attributes `json:"attributes"`
	// Other faces on the photo, the largest first. Absent unless multipleFaces of the application is dominant and the
	// photo has several faces.
	IgnoredFaces []IgnoredFace `json:"ignoredFaces,omitzero" schema:"min=1 max=19"`
}
