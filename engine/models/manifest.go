package models

// Format is the manifest format that this package reads. A change of any field's meaning raises it.
const Format = 1

// Limits of a manifest.
const (
	maxManifestBytes = 64 << 10
	maxFiles         = 16
	maxFileBytes     = 512 << 20
	maxPackBytes     = 1 << 30
	maxTextBytes     = 2000
	maxNameBytes     = 100
	maxSide          = 2048
	minDim           = 16
	maxDim           = 2048
	maxPoints        = 64
	// Means of photosMin to photosMax photos have points of their own.
	photosMin = 2
	photosMax = 4
	// spectrumSlack is how far the sum of a spectrum may be from 1.
	spectrumSlack = .01
	maxWeight     = 1e6
	maxNorm       = 1e6
)

// Role is the purpose of a file. A pack has at most one file of each role.
type Role string

// The roles. Detector, Landmarks and Embedder are required. Basis is required if the embedder has a
// basis, Embedder2 and Projection if the pack has two embedders; Pose is optional.
const (
	RoleDetector   Role = "detector"
	RoleLandmarks  Role = "landmarks"
	RoleEmbedder   Role = "embedder"
	RoleBasis      Role = "basis"
	RoleEmbedder2  Role = "embedder2"
	RoleProjection Role = "projection"
	RolePose       Role = "pose"
)

// Channels is the order of the colour planes of a model's input.
type Channels string

// The orders. Grey is one plane, BT.601 luma.
const (
	RGB  Channels = "RGB"
	BGR  Channels = "BGR"
	Grey Channels = "GREY"
)

// Count returns the number of planes, or 0 for an unknown order.
func (c Channels) Count() int {
	switch c {
	case RGB, BGR:
		return 3
	case Grey:
		return 1
	}
	return 0
}

// DetectorKind says how to read a detector's outputs.
type DetectorKind string

// The kinds of detectors.
const (
	// KindRFB has the outputs "scores" [1, n, 2] (background, face; they sum to 1) and "boxes" [1,
	// n, 4] (left, top, right, bottom as fractions of the input).
	KindRFB DetectorKind = "rfb"
	// KindYuNet has, for each stride s of 8, 16 and 32 pixels, the outputs "cls_s" and "obj_s" [1,
	// cells, 1] and "bbox_s" [1, cells, 4] of the cells, row after row. A box's score is the root
	// of cls × obj. The sides of the input are multiples of 32.
	KindYuNet DetectorKind = "yunet"
)

// LandmarksKind says how to read the landmarks' output.
type LandmarksKind string

// KindPoints68 has one output [1, 136]: x and y in turn of the 68 points of the iBUG 300-W scheme,
// as fractions of the crop.
const KindPoints68 LandmarksKind = "points68"

// Feature names one measurement that a face's quality is computed from.
type Feature string

// The features that a quality may weigh.
const (
	// FeatureNorm is the L2 norm of the embedder's output before normalisation.
	FeatureNorm Feature = "norm"
	// FeatureScore is the detector's score, 0 to 1.
	FeatureScore Feature = "score"
	// FeatureSharpness is ln(1 + variance of the Laplacian) of the grey aligned
	// crop, values 0 to 255.
	FeatureSharpness Feature = "sharpness"
	// FeatureDirectionalSharpness is FeatureSharpness along the direction in which it is least.
	// Motion blur lowers it even when FeatureSharpness stays high.
	FeatureDirectionalSharpness Feature = "directionalSharpness"
	// FeatureContrast is the standard deviation of the grey aligned crop / 255.
	FeatureContrast Feature = "contrast"
	// FeatureBrightness is the mean of the grey aligned crop / 255.
	FeatureBrightness Feature = "brightness"
	// FeatureEyeDistance is ln of the distance of the eye centres in pixels of
	// the upright image.
	FeatureEyeDistance Feature = "eyeDistance"
	// FeatureFrontal is the degree of frontal view, 0 to 1.
	FeatureFrontal Feature = "frontal"
	// FeatureIsotropy is FeatureDirectionalSharpness minus the sharpness along the sharpest
	// direction: 0 or less, and lower with more motion blur.
	FeatureIsotropy Feature = "isotropy"
	// FeatureFineness compares the detail of the grey aligned crop at a distance of two pixels with
	// that at six (ln of the variances' ratio, mean of four directions). Blur lowers it, noise
	// raises it, contrast does not change it.
	FeatureFineness Feature = "fineness"
	// FeatureSmear is 5 − FeatureDirectionalSharpness, or 0 if that is negative. Weaker
	// blur costs the embedder little.
	FeatureSmear Feature = "smear"
	// FeatureUnevenness is the range, over both eyes, nose and mouth, of ln(1 + mean of the
	// Laplacian's magnitude) in the grey aligned crop. An object that covers a part of the face has
	// different detail.
	FeatureUnevenness Feature = "unevenness"
	// FeatureClipped is the share of nearly black or white pixels (below 4, above 251) in the grey
	// aligned crop.
	FeatureClipped Feature = "clipped"
	// FeatureDoubt is the mean distance between the landmarks' two passes, in units of the eye
	// distance.
	FeatureDoubt Feature = "doubt"
)

// Manifest is the content of manifest.json. All its numbers are finite. Open and Parse return only
// manifests whose fields are valid as documented.
type Manifest struct {
	// Format is the constant Format.
	Format int `json:"format"`
	// Name ([a-z0-9-]) and Version ([a-z0-9.-]) are for people.
	Name    string `json:"name"`
	Version string `json:"version"`
	// Note is for people: the origin of the pack, and what is unknown about it.
	Note string `json:"note,omitempty"`

	Files       []File      `json:"files"`
	Detector    Detector    `json:"detector"`
	Landmarks   Landmarks   `json:"landmarks"`
	Embedder    Embedder    `json:"embedder"`
	Joined      *Joined     `json:"joined,omitempty"`
	Pose        *Pose       `json:"pose,omitempty"`
	Quality     Quality     `json:"quality"`
	Calibration Calibration `json:"calibration"`

	// OwnEvidence may be missing. Manifest.Evidence returns it, or the usual one.
	OwnEvidence *Evidence `json:"evidence,omitempty"`
}

// File is one file of the pack, beside its manifest.
type File struct {
	Role Role `json:"role"`
	// Name is a plain file name, [A-Za-z0-9._-], not starting with a dot.
	Name string `json:"name"`
	// Size is in bytes; SHA256 in 64 lower-case hex digits.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Licence is an SPDX identifier or a few words. Source says where the bytes come from and how
	// they were changed.
	Licence string `json:"licence"`
	Source  string `json:"source"`
}

// Input describes the input of a model: float32 NCHW, each value (x − Mean) × Scale with
// x from 0 to 255.
type Input struct {
	Width    int      `json:"width"`
	Height   int      `json:"height"`
	Channels Channels `json:"channels"`
	// Mean and Scale have one number for each plane, in the order of Channels.
	Mean  []float32 `json:"mean"`
	Scale []float32 `json:"scale"`
}

// Detector is how faces are found.
type Detector struct {
	Kind  DetectorKind `json:"kind"`
	Input Input        `json:"input"`
	// MinScore is the least score of a box found on the whole frame, and
	// MinTileScore of one found on a tile or a smaller scale; 0 to 1.
	MinScore     float32 `json:"minScore"`
	MinTileScore float32 `json:"minTileScore"`
	// MaxOverlap is the largest intersection over union of two boxes that are
	// both kept; 0 to 1.
	MaxOverlap float32 `json:"maxOverlap"`
	// MinNorm is the least embedding norm (before normalisation) that confirms
	// a box as a face; 0 asks for none.
	MinNorm float32 `json:"minNorm"`
}

// Landmarks says how the points of a face are found: in a square crop about the centre of the
// detector's box, edges replicated.
type Landmarks struct {
	Kind  LandmarksKind `json:"kind"`
	Input Input         `json:"input"`
	// CropScale is the crop's side as a multiple of the box's height, .5 to 3.
	CropScale float32 `json:"cropScale"`
}

// Embedder says how a face becomes a template, or one half of it (Joined). The least-squares similarity that maps the face's
// five points to Points crops the input out of the upright image. The output [n, Dim] is normalised
// to unit L2 norm.
type Embedder struct {
	Input Input `json:"input"`
	// Dim is the number of output values.
	Dim int `json:"dim"`
	// Points are the image-left eye, image-right eye, nose tip, image-left and image-right mouth
	// corner, in pixels (x, y) of the input.
	Points [5][2]float32 `json:"points"`
	// Spectrum, which may be missing, is the share of a template's squared norm that each of the
	// Dim values has, together 1. Manifest.Spectrum returns it.
	Spectrum []float64 `json:"spectrum,omitempty"`
	// Basis is set if the embedder's outputs are coordinates in a basis that is a file of the pack.
	Basis *Basis `json:"basis,omitempty"`
}

// Basis describes the file of role basis: Rows × Cols little-endian float32, row after row, with
// orthonormal rows. Rows is the embedder's Dim. Cols is the number of values that the model had
// before the basis was folded in.
type Basis struct {
	Rows int `json:"rows"`
	Cols int `json:"cols"`
}

// Pose describes the input of the optional pose model: a square crop about the centre of the
// detector's box, with a side of CropScale times the box's longer side.
type Pose struct {
	Input     Input   `json:"input"`
	CropScale float32 `json:"cropScale"`
}

// Quality is 1 / (1 + exp(−(Bias + Σ weight × feature))).
type Quality struct {
	Bias    float64             `json:"bias"`
	Weights map[Feature]float64 `json:"weights"`
	// Data says which data the coefficients were fitted on, and the result.
	Data string `json:"data"`
}

// Calibration maps cosines to scores: straight lines between Points, rounded down to an integer.
type Calibration struct {
	// FMR7000 is the false match rate, between 0 and 1, of a threshold of score 7000, as measured
	// on Data.
	FMR7000 float64 `json:"fmr7000"`
	// Data names the data set, the number of pairs and the pipeline.
	Data string `json:"data"`
	// Points have strictly rising cosines, the first −1 and the last 1, and scores from 0 to 9999
	// that never fall. One of them has score 7000. A cosine of SameImageCosine or more has the
	// score 9999.
	Points []CalibrationPoint `json:"points"`
	// Subjects, which may be missing, has points for the templates of subjects with several photos.
	// Without those of a number of photos, Points counts for them.
	Subjects []SubjectCalibration `json:"subjects,omitempty"`
}

// SubjectCalibration maps the cosines of means to scores.
type SubjectCalibration struct {
	// Photos is the number of templates in a mean: 2, 3, or 4, which stands for more. It rises
	// strictly in Calibration.Subjects.
	Photos int `json:"photos"`
	// FMR7000 is the false match rate at score 7000, between 0 and 1, of the larger of the mean's
	// and the best photo's score, as measured.
	FMR7000 float64 `json:"fmr7000"`
	// Points are of the form of Calibration.Points.
	Points []CalibrationPoint `json:"points"`
}

// CalibrationPoint is one point of the calibration.
type CalibrationPoint struct {
	Cosine float64 `json:"cosine"`
	Score  int     `json:"score"`
}

// MaxScore is the largest score, that of an image compared with itself.
const MaxScore = 9999

// SameImageCosine is the cosine from which every score is MaxScore.
const SameImageCosine = .999

// File returns the file of a role.
func (m *Manifest) File(role Role) (File, bool) {
	for _, f := range m.Files {
		if f.Role == role {
			return f, true
		}
	}
	return File{}, false
}
