package importing

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"facet.internal/client"
	"facet/cmd/facet/importing/list"
	"facet/cmd/facet/printable"
)

// Double is the outcome of a row that shows a person who is in an earlier row or in the gallery
// under another external id, or none.
const Double Outcome = "double"

// CheckSummary counts the rows of a check by what an import would do.
type CheckSummary struct {
	Rows       int `json:"rows"`
	Registered int `json:"registered"`
	Added      int `json:"added"`
	Replaced   int `json:"replaced"`
	Skipped    int `json:"skipped"`
	Doubles    int `json:"doubles"`
	// InList are the doubles of other rows, InGallery those of enrolled subjects. A row may be both.
	InList    int `json:"doublesInList"`
	InGallery int `json:"doublesInGallery"`
	Failed    int `json:"failed"`
	// PlacesMissing is how many faces more than the gallery's free places the import would enrol.
	PlacesMissing int    `json:"placesMissing"`
	Report        string `json:"report"`

	room string // how to make the places
}

// Print prints the summary for people.
func (s CheckSummary) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d rows would be: %d registered, %d added to persons, %d replaced, %d skipped, %d failed\n"+
		"%d doubles: %d of other rows, %d of enrolled persons\n%sreport: %s\n",
		s.Rows, s.Registered, s.Added, s.Replaced, s.Skipped, s.Failed, s.Doubles, s.InList, s.InGallery, s.room, s.Report)
	return err
}

// judge tells of each row what an import would do, in the order of the rows.
type judge struct {
	found []finding
	known Known
	same  []map[int]int    // by place: other rows with the same person, with their scores
	seen  map[string]Known // external ids of earlier rows, with what becomes of their persons
	sum   CheckSummary
	need  int // places that the rows need
}

// judged is a row of the report.
type judged struct {
	row                 list.Row
	outcome             Outcome
	same                []int // places of other rows
	subject, externalID string
	score               int
	quality             float32
	reasons             []string
}

func newJudge(found []finding, known Known) *judge {
	j := &judge{found: found, known: known, same: make([]map[int]int, len(found)), seen: map[string]Known{}}
	for at, f := range found {
		for _, r := range f.checked.Rows {
			if f.err != nil || r.Row < 0 || r.Row >= len(found) || j.samePerson(at, r.Row) {
				continue
			}
			j.pair(at, r.Row, r.Score) // only the later of the two requests saw the other
			j.pair(r.Row, at, r.Score)
		}
	}
	return j
}

func (j *judge) pair(at, other, score int) {
	if j.same[at] == nil {
		j.same[at] = map[int]int{}
	}
	j.same[at][other] = score
}

// samePerson reports whether two rows have one external id.
func (j *judge) samePerson(a, b int) bool {
	return j.found[a].row.ExternalID != "" && j.found[a].row.ExternalID == j.found[b].row.ExternalID
}

// row judges the row at a place. The rows before it are judged.
func (j *judge) row(at int) judged {
	f := j.found[at]
	j.sum.Rows++
	if f.err != nil {
		j.sum.Failed++
		return judged{row: f.row, outcome: Failed, reasons: []string{f.err.Error()}}
	}
	out := judged{row: f.row, outcome: j.expected(f), quality: float32(f.checked.Attributes.FaceQualityScore), same: slices.Sorted(maps.Keys(j.same[at]))}
	if f.checked.Known != "" {
		out.subject, out.externalID = f.checked.Known, f.row.ExternalID
		out.reasons = append(out.reasons, "the gallery knows this external id")
	}
	if out.outcome == Registered || out.outcome == Added {
		j.need++
	}
	inList, inGallery := false, false
	for _, other := range out.same {
		inList = inList || other < at
		out.reasons = append(out.reasons, fmt.Sprintf("shows the person of row %d, score %d", j.found[other].row.Number, j.same[at][other]))
	}
	if c, ok := f.enrolled(); ok {
		inGallery = true
		out.subject, out.externalID, out.score = c.ID, c.ExternalID, c.Score
		out.reasons = append(out.reasons, fmt.Sprintf("shows the enrolled subject %s, score %d", nameOf(c), c.Score))
	}
	if (inList || inGallery) && out.outcome != Skipped {
		out.outcome = Double
		j.countDouble(inList, inGallery)
	}
	j.count(out.outcome)
	return out
}

// expected returns what becomes of a row whose person is in no other row and no other subject.
func (j *judge) expected(f finding) Outcome {
	person := f.row.ExternalID
	if person == "" {
		return Registered
	}
	treated, again := j.seen[person]
	switch {
	case again && treated == Skip:
		return Skipped
	case again:
		return Added
	case f.checked.Known == "":
		j.seen[person] = Add
		return Registered
	}
	j.seen[person] = j.known
	switch j.known {
	case Replace:
		return Replaced
	case Add:
		return Added
	case Skip:
	}
	return Skipped
}

// enrolled returns the best enrolled subject that the row shows, other than its own.
func (f finding) enrolled() (client.Candidate, bool) {
	for _, c := range f.checked.Candidates {
		if c.ID != f.checked.Known {
			return c, true
		}
	}
	return client.Candidate{}, false
}

func nameOf(c client.Candidate) string {
	if c.ExternalID != "" {
		return strconv.Quote(c.ExternalID)
	}
	return c.ID
}

func (j *judge) countDouble(inList, inGallery bool) {
	j.sum.Doubles++
	if inList {
		j.sum.InList++
	}
	if inGallery {
		j.sum.InGallery++
	}
}

func (j *judge) count(o Outcome) {
	switch o {
	case Registered:
		j.sum.Registered++
	case Added:
		j.sum.Added++
	case Replaced:
		j.sum.Replaced++
	case Skipped:
		j.sum.Skipped++
	case Failed, Double: // counted where they are found
	}
}

// reportCheck writes what an import would do with each row. An older report is replaced.
func reportCheck(cfg Config, found []finding, room *client.GalleryRoom) (sum CheckSummary, err error) {
	f, err := os.OpenFile(cfg.Report, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return sum, err // the error names the file
	}
	buffer := bufio.NewWriter(f)
	out := csv.NewWriter(buffer)
	_ = out.Write([]string{"row", "external_id", "outcome", "same_rows", "subject_id", "subject_external_id", "score", "quality", "reason", "file"})
	j := newJudge(found, cfg.Known)
	shown := 0
	for at := range found {
		l := j.row(at)
		_ = out.Write(printable.Row(l.cells(found)))
		if l.outcome != Failed && l.outcome != Double {
			continue
		}
		if shown++; shown <= failuresMax {
			fmt.Fprintf(cfg.Out, "row %d, %s: %s\n", l.row.Number, l.row.File, strings.Join(l.reasons, "; "))
		}
	}
	if shown > failuresMax {
		fmt.Fprintf(cfg.Out, "… and %d more\n", shown-failuresMax)
	}
	out.Flush()
	if room != nil && j.need > room.Size-room.Count {
		j.sum.PlacesMissing = j.need - (room.Size - room.Count)
		j.sum.room = lacks(cfg, *room, j.need) + "\n"
	}
	j.sum.Report = cfg.Report
	return j.sum, errors.Join(out.Error(), buffer.Flush(), f.Sync(), f.Close())
}

// cells returns a row of the report.
func (l judged) cells(found []finding) []string {
	var score, quality string
	if l.score > 0 {
		score = strconv.Itoa(l.score)
	}
	if l.quality > 0 {
		quality = strconv.FormatFloat(float64(l.quality), 'f', 4, 32)
	}
	same := make([]string, len(l.same))
	for i, at := range l.same {
		same[i] = strconv.Itoa(found[at].row.Number)
	}
	return []string{
		strconv.Itoa(l.row.Number), l.row.ExternalID, string(l.outcome), strings.Join(same, " "), l.subject, l.externalID,
		score, quality, strings.Join(l.reasons, "; "), l.row.File,
	}
}
