package models

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"facet/engine/models"
)

// faces fits evidence, least norm and quality to the specimens, prints them, and puts them into the
// fit, whose points say what 7000 is.
func (c Calibration) faces(s *specimens, measured *models.Fit) error {
	cosine := cosineOf(measured.Calibration, score7000)
	f, err := fitFaces(s, cosine)
	if err != nil {
		return err
	}
	q, err := fitQuality(s, cosine, f)
	if err != nil {
		return err
	}
	f.evidence.Data = c.evidenceData(s, f)
	measured.Evidence, measured.MinNorm = &f.evidence, &f.minNorm
	measured.Quality = q.quality(c.qualityData(q))
	return c.printFaces(s, f, q)
}

const score7000 = 7000

// cosineOf returns the cosine of a score that is one of the points.
func cosineOf(c *models.Calibration, score int) float64 {
	for _, p := range c.Points {
		if p.Score == score {
			return p.Cosine
		}
	}
	return 1
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

func (c Calibration) evidenceData(s *specimens, f *faceFit) string {
	return fmt.Sprintf("%s: %d faces as photographed and %d spoilt copies, %d detections on the photographs turned by 90, 180 and 270 degrees, "+
		"%d on copies with shuffled blocks. Upright: logistic fit; at most 1 in 1000 detections of the wrong way up and 99 %% of the photographs count as upright at once; %s of the "+
		"photographs do, without the norm %s. Least norm, the unit of norms: where one comparison in 50 reaches 7000, "+
		"or where 1 in 1000 photographs is refused, if that is less; from %d comparisons, whose success the norm tells with an AUC of %.3f. Face: not fitted but for that unit; %s of the "+
		"photographs, %s of the copies and %s of the shuffled ones count as faces. Written by facet models calibrate.",
		c.name(), s.photographs(), len(s.faces)-s.photographs(), len(s.turned), len(s.shuffled), percent(f.upright), percent(f.byShape), s.pairs, f.normAUC,
		percent(f.found), percent(f.foundCopies), percent(f.foundShuffled))
}

func (c Calibration) qualityData(q *qualityFit) string {
	var reach []string
	var accepted, reached float64
	for g := range q.reach {
		reach = append(reach, fmt.Sprintf("to %g %.0f %%", grades[g+1], 100*q.reach[g]))
		if grades[g] >= .45 {
			accepted += q.share[g]
			reached += q.share[g] * q.reach[g]
		}
	}
	return fmt.Sprintf("The probability that a comparison with another photograph of the same person reaches score 7000. %s: logistic fit on %d faces of %d persons, %d of them as photographed, "+
		"the others spoilt copies (out of focus, moved, few pixels, dark, too bright, flat, noisy, strongly compressed, partly covered, turned aside), in %d comparisons. "+
		"Tested by fits on one half of the persons on the other half: AUC %.3f; of the comparisons of faces up to a quality reach 7000: %s. %.0f %% of the faces have .45 or more, of whose comparisons %.0f %% reach 7000. "+
		"Written by facet models calibrate.",
		c.name(), q.faces, q.persons, q.photographs, q.comparisons, q.auc, strings.Join(reach, ", "), 100*accepted, 100*reached/max(accepted, 1e-9))
}

func (c Calibration) printFaces(s *specimens, f *faceFit, q *qualityFit) error {
	e := &f.evidence
	fmt.Fprintf(c.Out, "\nfaces: %d as photographed, %d copies, %d detections of the wrong way up, %d on shuffled copies; %d comparisons\n\n",
		s.photographs(), len(s.faces)-s.photographs(), len(s.turned), len(s.shuffled), s.pairs)
	tabs := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	row := func(what, value, from string) { fmt.Fprintf(tabs, "%s\t%s\t%s\n", what, value, from) }
	row("fitted", "value", "from")
	row("least norm", fmt.Sprintf("%.3g", f.minNorm),
		fmt.Sprintf("%d comparisons of %d faces, AUC %.3f; refuses %s of the photographs", s.pairs, len(s.faces), f.normAUC, percent(f.refused)))
	upright := func(what string, u models.UprightEvidence, share float64) {
		row(what, fmt.Sprintf("norm %.3g, doubt %.3g, eyes %.3g, below %.3g, odds %.3g, least %.3g", u.Norm, u.Doubt, u.Eyes, u.EyesBelow, u.Odds, u.Least),
			fmt.Sprintf("%d photographs, %s at once; %d of the wrong way up", s.photographs(), percent(share), len(s.turned)))
	}
	upright("upright", e.Upright, f.upright)
	upright("upright without norm", f.shape, f.byShape)
	row("face", fmt.Sprintf("norm %.3g, doubt %.3g, sure %.3g, even %.3g, slope %.3g", e.Face.Norm, e.Face.Doubt, e.Face.Sure, e.Face.Even, e.Face.Slope),
		fmt.Sprintf("norm in units of %.3g; faces are %s of the photographs, %s of %d copies, %s of %d shuffled",
			e.NormUnit, percent(f.found), percent(f.foundCopies), len(s.faces)-s.photographs(), percent(f.foundShuffled), len(s.shuffled)))
	row("quality", fmt.Sprintf("bias %.3f", q.Bias),
		fmt.Sprintf("%d comparisons of %d faces of %d persons; on the other halves AUC %.3f", q.comparisons, q.faces, q.persons, q.auc))
	for i, w := range q.Weights {
		row("", fmt.Sprintf("%s %.3f", weighed[i], w), "")
	}
	if err := tabs.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(c.Out)
	row("quality up to", "faces", "comparisons that reach 7000")
	for g := range q.reach {
		row(fmt.Sprint(grades[g+1]), percent(q.share[g]), percent(q.reach[g]))
	}
	return tabs.Flush()
}
