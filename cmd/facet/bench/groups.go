package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"facet/engine/accuracy"
)

const (
	groupsBytesMax = 16 << 20 // of a list of groups
	attributesMax  = 16
	personColumn   = "person"
	notShown       = "not shown"
)

// byteOrderMark begins the files of some spreadsheets.
var byteOrderMark = []byte("\ufeff")

// groups measures the groups of persons that the file cfg.Groups lists.
func (m *measured) groups(ctx context.Context, file string, doc *Document) error {
	if file == "" {
		return nil
	}
	partitions, err := readGroups(file, m.persons)
	if err != nil {
		return err
	}
	for _, p := range partitions {
		rates, err := accuracy.CompareGroups(ctx, m.samples, m.compare, p, thresholds)
		if err != nil {
			return fmt.Errorf("compare groups: %w", err)
		}
		doc.Groups = append(doc.Groups, rates)
	}
	return nil
}

// readGroups reads a CSV file with a line for each person: the name of its folder, and its
// group by each attribute, or nothing where that is not known. The header names the
// attributes.
func readGroups(file string, persons []string) ([]accuracy.Partition, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read groups: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, groupsBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read groups: %w", err)
	}
	list, err := parseGroups(text, persons)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return list, nil
}

func parseGroups(text []byte, persons []string) ([]accuracy.Partition, error) {
	if len(text) > groupsBytesMax {
		return nil, fmt.Errorf("it has more than %d MB", groupsBytesMax>>20)
	}
	lines := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, byteOrderMark)))
	head, err := lines.Read()
	if err != nil {
		return nil, fmt.Errorf("read the header, which is person and then the attributes: %w", err)
	}
	switch {
	case head[0] != personColumn || len(head) < 2:
		return nil, fmt.Errorf("the header must be %s and then one attribute or more, such as %s,age", personColumn, personColumn)
	case len(head)-1 > attributesMax:
		return nil, fmt.Errorf("there are %d attributes, the most is %d", len(head)-1, attributesMax)
	}
	number := make(map[string]int, len(persons))
	for i, p := range persons {
		number[p] = i
	}
	members := make([]map[string][]int, len(head)-1)
	for i := range members {
		members[i] = make(map[string][]int)
	}
	listed := make(map[int]bool)
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the list: %w", err)
		}
		row, _ := lines.FieldPos(0)
		p, ok := number[line[0]]
		switch {
		case !ok:
			return nil, fmt.Errorf("line %d: there is no folder of the person %q", row, line[0])
		case listed[p]:
			return nil, fmt.Errorf("line %d: the person %q is there twice", row, line[0])
		}
		listed[p] = true
		for i, group := range line[1:] {
			if group == "" {
				continue
			}
			if members[i][group] = append(members[i][group], p); len(members[i]) > accuracy.GroupsMax {
				return nil, fmt.Errorf("line %d: %s has more than %d groups", row, head[i+1], accuracy.GroupsMax)
			}
		}
	}
	return partitions(head[1:], members), nil
}

func partitions(attributes []string, members []map[string][]int) (list []accuracy.Partition) {
	for i, attribute := range attributes {
		p := accuracy.Partition{Attribute: attribute}
		for name, persons := range members[i] {
			p.Groups = append(p.Groups, accuracy.Group{Name: name, Persons: persons})
		}
		slices.SortFunc(p.Groups, func(a, b accuracy.Group) int { return cmp.Compare(a.Name, b.Name) })
		list = append(list, p)
	}
	return list
}

// groupTable has a row for each group and threshold, and one for the spread at each threshold.
func groupTable(g *accuracy.ByGroup) table {
	t := table{{g.Attribute, "persons", "photographs", "threshold", "FMR", "FNMR"}}
	for _, group := range g.Groups {
		for i, a := range group.At {
			row := []string{"", "", "", strconv.Itoa(a.Threshold), shownRate(a.FMR), shownRate(a.FNMR)}
			if i == 0 {
				row[0], row[1], row[2] = group.Name, number(group.Persons), number(group.Photos)
			}
			t = append(t, row)
		}
	}
	return t
}

func spreadTable(g *accuracy.ByGroup) table {
	t := table{{"threshold", "FMR: Gini", "largest / smallest", "FNMR: Gini", "largest / smallest", "groups shown"}}
	for _, s := range g.Spreads {
		row := []string{strconv.Itoa(s.Threshold)}
		counts := [2]int{}
		for i, of := range []*accuracy.Spread{s.FMR, s.FNMR} {
			if of == nil {
				row = append(row, notShown, notShown)
				continue
			}
			row, counts[i] = append(row, fmt.Sprintf("%.2f", of.Gini), fmt.Sprintf("%.1f", of.Ratio)), of.Groups
		}
		t = append(t, append(row, fmt.Sprintf("%d and %d of %d", counts[0], counts[1], len(g.Groups))))
	}
	return t
}

func shownRate(r *accuracy.Rate) string {
	if r == nil {
		return notShown
	}
	return r.String()
}
