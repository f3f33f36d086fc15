package accuracy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits of a list of pairs.
const (
	pairsMax     = 1_000_000
	foldsMax     = 1000
	pairLineMax  = 1024
	personMax    = 255 // bytes of a name
	photoNumbers = 1_000_000
)

// ErrPairs is returned for an unreadable list of pairs. The text after it names the line.
var ErrPairs = errors.New("list of pairs is not usable")

// Photo names a photograph: a person and a number from 1.
type Photo struct {
	Person string
	Number int
}

// Pair is one line of a list.
type Pair struct {
	A, B Photo
	Fold int // from 0
}

// Mated reports whether both photographs show one person.
func (p Pair) Mated() bool { return p.A.Person == p.B.Person }

// ReadPairs reads a list in the format of the data set LFW. The first line has the number of folds
// and of pairs of each kind in a fold, or only the latter for one fold. Each fold then has that
// many lines "name number number", and that many lines "name number name number", separated by tabs
// or spaces. Errors wrap ErrPairs or come from r.
func ReadPairs(r io.Reader) ([]Pair, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, pairLineMax), pairLineMax)
	folds, each, err := readHeader(lines)
	if err != nil {
		return nil, err
	}
	var pairs []Pair
	var kinds [2]int // mated and non-mated ones of the fold
	for n := 2; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if len(pairs) == 2*folds*each {
			return nil, fmt.Errorf("%w: line %d: more than %d folds of %d and %d pairs", ErrPairs, n, folds, each, each)
		}
		p, err := parsePair(fields)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrPairs, n, err)
		}
		p.Fold = len(pairs) / (2 * each)
		if len(pairs)%(2*each) == 0 {
			kinds = [2]int{}
		}
		kind := 0
		if !p.Mated() {
			kind = 1
		}
		if kinds[kind]++; kinds[kind] > each {
			return nil, fmt.Errorf("%w: line %d: fold %d has more than %d pairs of this kind", ErrPairs, n, p.Fold+1, each)
		}
		pairs = append(pairs, p)
	}
	if err := lines.Err(); err != nil {
		return nil, scanError(err)
	}
	if len(pairs) != 2*folds*each {
		return nil, fmt.Errorf("%w: %d pairs, the first line says %d folds of %d and %d", ErrPairs, len(pairs), folds, each, each)
	}
	return pairs, nil
}

func scanError(err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%w: a line is longer than %d bytes", ErrPairs, pairLineMax)
	}
	return fmt.Errorf("read list of pairs: %w", err)
}

func readHeader(lines *bufio.Scanner) (folds, each int, err error) {
	if !lines.Scan() {
		if err := lines.Err(); err != nil {
			return 0, 0, scanError(err)
		}
		return 0, 0, fmt.Errorf("%w: it is empty", ErrPairs)
	}
	fields := strings.Fields(lines.Text())
	if len(fields) == 1 {
		fields = []string{"1", fields[0]}
	}
	if len(fields) != 2 {
		return 0, 0, fmt.Errorf("%w: line 1 is not the number of folds and of pairs", ErrPairs)
	}
	folds, err = number(fields[0], foldsMax)
	if err == nil {
		each, err = number(fields[1], pairsMax)
	}
	if err == nil && 2*folds*each > pairsMax {
		err = fmt.Errorf("more than %d pairs", pairsMax)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: line 1: %w", ErrPairs, err)
	}
	return folds, each, nil
}

func parsePair(fields []string) (Pair, error) {
	var p Pair
	switch len(fields) {
	case 3:
		fields = []string{fields[0], fields[1], fields[0], fields[2]}
	case 4:
		if fields[0] == fields[2] {
			return p, errors.New("the two names are one")
		}
	default:
		return p, fmt.Errorf("%d fields, want 3 or 4", len(fields))
	}
	for i, photo := range []*Photo{&p.A, &p.B} {
		name := fields[2*i]
		if len(name) > personMax || name[0] == '.' || strings.ContainsAny(name, `/\`+"\x00") {
			return p, errors.New("a name is not that of a folder")
		}
		n, err := number(fields[2*i+1], photoNumbers)
		if err != nil {
			return p, err
		}
		*photo = Photo{name, n}
	}
	if p.A == p.B {
		return p, errors.New("a photograph with itself")
	}
	return p, nil
}

func number(text string, limit int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > limit {
		return 0, fmt.Errorf("a number is not from 1 to %d", limit)
	}
	return n, nil
}
