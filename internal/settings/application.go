package settings

import (
	"fmt"
	"slices"
)

// The bounds and defaults of applications that requests share.
const (
	// ThresholdMax is the largest score and threshold.
	ThresholdMax = 9999
	// ThresholdDefault is the threshold of a request that gives none.
	ThresholdDefault = 7000
	// SearchLimitMax is the most events in the answer to a search.
	SearchLimitMax = 50
)

// Application are the settings of an application. The keys of records are below 64.
type Application struct {
	Name        string `cbor:"4,keyasint" json:"name"`
	Description string `cbor:"5,keyasint" json:"description"`
	// MinimumQuality is the lowest quality of an enrolled face, 0 to 1.
	MinimumQuality float64 `cbor:"8,keyasint" json:"faceMinimumQualityScore"`
	// VerifyThreshold and GuardThreshold are scores.
	VerifyThreshold int `cbor:"9,keyasint" json:"verifyThreshold"`
	// Guard is whether an enrolment of a known face is refused.
	Guard          bool `cbor:"11,keyasint,omitempty" json:"enrolmentGuard"`
	GuardThreshold int  `cbor:"10,keyasint" json:"enrolmentGuardThreshold"`
	// MultipleFaces is what happens to a photo with several faces.
	MultipleFaces FaceRule `cbor:"14,keyasint,omitempty" json:"multipleFaces,omitzero"`
	// ReviewThreshold is the lowest score of the review band, which ends below the threshold of a match. 0 is
	// no band.
	ReviewThreshold int `cbor:"15,keyasint,omitempty" json:"reviewThreshold,omitzero"`
	// ReviewVerdicts is how many verdicts close a case, and ReviewDays how long it stays open.
	ReviewVerdicts int `cbor:"16,keyasint,omitempty" json:"reviewVerdicts,omitzero"`
	ReviewDays     int `cbor:"17,keyasint,omitempty" json:"reviewDays,omitzero"`
	// SearchThresholdMin is the lowest threshold of a search, and SearchLimitMax the largest limit. 0 is no
	// bound.
	SearchThresholdMin int `cbor:"18,keyasint,omitempty" json:"searchThresholdMin,omitzero"`
	SearchLimitMax     int `cbor:"19,keyasint,omitempty" json:"searchLimitMax,omitzero"`
}

var applicationFields = []Field{
	nameField, descriptionField,
	{
		Name: "faceMinimumQualityScore", Min: 0.45, Max: 1, Required: true, Core: true, Example: "0.5",
		Doc:  "Lowest faceQualityScore of a photo to register.",
		Flag: "min-quality", Help: "the lowest quality of a face that is enrolled, 0.45 to 1",
	},
	{
		Name: "verifyThreshold", Max: ThresholdMax, Default: ThresholdDefault, Example: "7500",
		Doc:  "Lowest score that verifies.",
		Help: "the lowest score of the same person in verify, 0 to 9999",
	},
	{
		Name: "enrolmentGuard", Example: "true",
		Doc:  "Refuse to register a face that the gallery knows.",
		Flag: "guard", Help: "refuse to enrol a person whom the gallery knows",
	},
	{
		Name: "enrolmentGuardThreshold", Max: ThresholdMax, Default: ThresholdDefault, Example: "8000",
		Doc:  "Lowest score that the guard takes for a known face.",
		Flag: "guard-threshold", Help: "the lowest score of the same person for --guard, 0 to 9999",
	},
	{
		Name: "multipleFaces", Choices: faceRules, Example: `"dominant"`,
		Doc:   "What happens to a photo with several faces where one is wanted: refuse answers MultipleFaces; dominant takes the face that is clearly the one meant, if there is one.",
		Shown: "With dominant a photo of several faces shows the one that is clearly meant. Absent if it is refused.",
		Help:  "a photo of several faces: refuse it, or take the dominant one, if one is clearly meant",
	},
	{
		Name: "reviewThreshold", Max: ThresholdMax, Example: "6000",
		Doc:   "Lowest score of the review band, which ends below the threshold: such a score is no match, and people review it. 0 is no band. Costs searches as a lower threshold does.",
		Shown: "Lowest score of the review band, which ends below the threshold. Absent without a band.",
		Help:  "the lowest score that people review, 0 to 9999; such a score is no match; 0: none",
	},
	{
		Name: "reviewVerdicts", Min: 1, Max: 2, Default: 1, Example: "2",
		Doc:   "How many verdicts close a case.",
		Shown: "How many verdicts close a case. Absent without a band.",
		Help:  "how many verdicts close a case, 1 or 2",
	},
	{
		Name: "reviewDays", Min: 1, Max: 365, Default: 7, Example: "3",
		Doc:   "How long a case stays open.",
		Shown: "How long a case stays open. Absent without a band.",
		Help:  "how many days a case stays open, 1 to 365",
	},
	{
		Name: "searchThresholdMin", Max: ThresholdMax, Example: "8000",
		Doc:   "Lowest threshold of a search. A search without a threshold has this one, a lower one is 400. 0 is no bound.",
		Shown: "Lowest threshold of a search. Absent without a bound.",
		Help:  "the lowest threshold that a search may ask for, 0 to 9999; 0: no bound",
	},
	{
		Name: "searchLimitMax", Max: SearchLimitMax, Example: "3",
		Doc:   "Largest limit of a search. A search without a limit has this one, a larger one is 400. 0 is no bound.",
		Shown: "Largest limit of a search. Absent without a bound.",
		Help:  "the most candidates that a search may ask for, 1 to 50; 0: no bound",
	},
}

// Reviewed returns a with the settings of reviews as the interface shows them: none without a band.
func (a Application) Reviewed() Application {
	if a.ReviewThreshold == 0 {
		a.ReviewVerdicts, a.ReviewDays = 0, 0
	}
	return a
}

// FaceRule says which face of several is taken. Package portrait defines the numbers.
type FaceRule uint8

var faceRules = []string{"refuse", "dominant"}

// MarshalText returns the rule as in JSON.
func (r FaceRule) MarshalText() ([]byte, error) {
	if int(r) >= len(faceRules) {
		r = 0 // of a newer version; this one refuses
	}
	return []byte(faceRules[r]), nil
}

// UnmarshalText parses a rule.
func (r *FaceRule) UnmarshalText(text []byte) error {
	i := slices.Index(faceRules, string(text))
	if i < 0 {
		return fmt.Errorf("%q is not a rule", text)
	}
	*r = FaceRule(i)
	return nil
}
