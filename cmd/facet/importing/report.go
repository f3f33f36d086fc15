package importing

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"facet/cmd/facet/importing/list"
	"facet/cmd/facet/printable"
	"facet/internal/id"
)

// Outcome is what became of a row.
type Outcome string

// The outcomes. All but Failed mean that the row is in.
const (
	Registered Outcome = "registered" // a new subject
	Added      Outcome = "added"      // another event of a known person
	Replaced   Outcome = "replaced"   // the event of a known person
	Skipped    Outcome = "skipped"    // the person is known
	Failed     Outcome = "failed"
)

const (
	// heldMax is how many rows may be finished while an earlier one is not.
	heldMax = 4096
	// failuresMax is the most failures that are printed one by one.
	failuresMax = 20
)

// line is one line of the report.
type line struct {
	row            list.Row
	outcome        Outcome
	subject, event id.UUID
	quality        float64 // 0: unknown
	reason         string
	earlier        bool // by an earlier run
}

// Summary counts the rows of an import by what became of them.
type Summary struct {
	Rows       int `json:"rows"`
	Registered int `json:"registered"`
	Added      int `json:"added"`
	Replaced   int `json:"replaced"`
	Skipped    int `json:"skipped"`
	Failed     int `json:"failed"`
	// AlreadyIn counts the rows that an earlier run brought in. They are among Registered,
	// Added and Replaced, too.
	AlreadyIn int    `json:"alreadyIn"`
	Report    string `json:"report"`

	earlier struct{ registered, added, replaced int }
}

// Print prints the summary for people.
func (s Summary) Print(w io.Writer) error {
	did := fmt.Sprintf("%d registered", s.Registered)
	if s.AlreadyIn > 0 {
		did = fmt.Sprintf("%d were in already, %d registered now", s.AlreadyIn, s.Registered-s.earlier.registered)
	}
	_, err := fmt.Fprintf(w, "%d rows: %s, %d added to persons, %d replaced, %d skipped, %d failed\nreport: %s\n",
		s.Rows, did, s.Added-s.earlier.added, s.Replaced-s.earlier.replaced, s.Skipped, s.Failed, s.Report)
	return err
}

func (s *Summary) count(l line) {
	earlier := 0
	if l.earlier {
		earlier = 1
	}
	s.Rows++
	s.AlreadyIn += earlier
	switch l.outcome {
	case Registered:
		s.Registered++
		s.earlier.registered += earlier
	case Added:
		s.Added++
		s.earlier.added += earlier
	case Replaced:
		s.Replaced++
		s.earlier.replaced += earlier
	case Skipped:
		s.Skipped++
	case Failed:
		s.Failed++
	case Double: // of checks, which have a summary of their own
	}
}

// report writes what became of the rows, in their order. It is safe for concurrent use.
type report struct {
	file  *os.File
	slots chan struct{} // one for each row that is fed and not written

	mu       sync.Mutex // guards the fields below
	buffer   *bufio.Writer
	out      *csv.Writer
	next     int // number of the row that is written next
	held     map[int]line
	sum      Summary
	failures []string
}

// createReport creates the file. An older report is replaced.
func createReport(name string) (*report, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err // the error names the file
	}
	buffer := bufio.NewWriter(f)
	r := &report{
		file: f, slots: make(chan struct{}, heldMax), buffer: buffer, out: csv.NewWriter(buffer), held: map[int]line{}, sum: Summary{Report: name},
	}
	return r, r.out.Write([]string{"row", "external_id", "outcome", "subject_id", "event_id", "quality", "reason", "file"})
}

// add takes the line of the row with this place in the order, from 0.
func (r *report) add(place int, l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[place] = l
	for {
		l, ok := r.held[r.next]
		if !ok {
			return
		}
		delete(r.held, r.next)
		r.next++
		r.write(l)
		<-r.slots
	}
}

// write writes one line. The caller holds mu. close returns the writer's error.
func (r *report) write(l line) {
	r.sum.count(l)
	if l.outcome == Failed && len(r.failures) < failuresMax {
		r.failures = append(r.failures, fmt.Sprintf("row %d, %s: %s", l.row.Number, l.row.File, l.reason))
	}
	var subject, event, quality string
	if l.subject != (id.UUID{}) {
		subject = l.subject.String()
	}
	if l.event != (id.UUID{}) {
		event = l.event.String()
	}
	if l.quality > 0 {
		quality = strconv.FormatFloat(l.quality, 'f', 4, 64)
	}
	_ = r.out.Write(printable.Row([]string{strconv.Itoa(l.row.Number), l.row.ExternalID, string(l.outcome), subject, event, quality, l.reason, l.row.File}))
}

// counts returns the outcomes so far.
func (r *report) counts() Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sum
	for _, l := range r.held {
		s.count(l)
	}
	return s
}

// close writes the rows that are finished behind one that is not, and closes the file.
func (r *report) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for place := r.next; len(r.held) > 0; place++ {
		if l, ok := r.held[place]; ok {
			delete(r.held, place)
			r.write(l)
		}
	}
	r.out.Flush()
	return errors.Join(r.out.Error(), r.buffer.Flush(), r.file.Sync(), r.file.Close())
}
