package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/pflag"
)

// Problems are all that is wrong with settings: each is a sentence for the person who made them.
type Problems []error

// Error returns one problem as it is, and several as a list.
func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].Error()
	}
	lines := []string{fmt.Sprintf("%d settings are wrong:", len(p))}
	for _, problem := range p {
		lines = append(lines, problem.Error())
	}
	return strings.Join(lines, "\n  ")
}

// Unwrap returns the problems (errors.Is).
func (p Problems) Unwrap() []error { return p }

// add appends a problem, or each of several. It ignores nil.
func (p *Problems) add(err error) {
	if several, ok := errors.AsType[Problems](err); ok {
		*p = append(*p, several...)
	} else if err != nil {
		*p = append(*p, err)
	}
}

// others returns the problems of err with settings that p does not name. A setting that can't be read
// is zero, which is no further problem.
func (p Problems) others(err error) error {
	checked, _ := errors.AsType[Problems](err)
	return slices.DeleteFunc(checked, func(e error) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Error(), "--"), " ")
		return slices.ContainsFunc(p, func(mine error) bool { return strings.Contains(mine.Error(), "'"+name+"'") })
	}).err()
}

// err returns the problems, or nil without one.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// nearest returns the name of the setting that is most like name, or "" if none is like it.
func nearest(f *pflag.FlagSet, name string) (best string) {
	least := 2 + len(name)/5 // letters that differ
	f.VisitAll(func(flag *pflag.Flag) {
		if d := levenshtein.ComputeDistance(flag.Name, strings.ToLower(strings.ReplaceAll(name, "_", "-"))); d <= least && flag.Name != FileFlag {
			best, least = flag.Name, d-1
		}
	})
	return best
}

// unknown returns the problem of a name that no setting has.
func unknown(f *pflag.FlagSet, where, name string) error {
	if best := nearest(f, name); best != "" {
		return fmt.Errorf("%s: there is no setting %q; the nearest is %q", where, name, best)
	}
	return fmt.Errorf("%s: there is no setting %q", where, name)
}

// doubts returns a sentence for each variable of facet's that is no setting, and whose name is like that of one.
// It is no problem, because other programs may have such variables, too.
func doubts(f *pflag.FlagSet, environ []string) (list []string) {
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		own, ours := strings.CutPrefix(name, VariablePrefix)
		if !ours || setting(f, name) != "" {
			continue
		}
		if best := nearest(f, own); best != "" {
			list = append(list, fmt.Sprintf("the variable %s is no setting; the nearest is %s%s", name, VariablePrefix, strings.ToUpper(strings.ReplaceAll(best, "-", "_"))))
		}
	}
	return list
}

// UnknownFlags returns a problem for each argument that looks like a flag which f does not have, with
// the nearest name.
func UnknownFlags(f *pflag.FlagSet, args []string) error {
	var p Problems
	for _, a := range args {
		if a == "--" {
			break
		}
		name, isFlag := strings.CutPrefix(a, "--")
		if name, _, _ = strings.Cut(name, "="); !isFlag || f.Lookup(name) != nil {
			continue
		}
		if best := nearest(f, name); best != "" {
			p.add(fmt.Errorf("unknown flag: --%s; the nearest is --%s", name, best))
		} else {
			p.add(fmt.Errorf("unknown flag: --%s", name))
		}
	}
	return p.err()
}
