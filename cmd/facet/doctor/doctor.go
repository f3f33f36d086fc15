// Package doctor examines a machine and a node, before and while the node runs. Each check says
// what it found and what to do. It changes nothing but a small file in the data directory, which
// it removes, and takes a few seconds.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/config"
	"facet/cmd/facet/process"
	"facet/cmd/facet/table"
	"facet/node/wire"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // the node works, and something should be done
	Problem Level = "problem" // the node does not work, or will not start
)

// Finding is the outcome of one check.
type Finding struct {
	Level Level  `json:"level"`
	Check string `json:"check"`
	Text  string `json:"text"`
	// Do is what to do next. It is empty for a check that is fine.
	Do string `json:"do,omitempty"`
}

// Report has the findings in the order of the checks.
type Report struct {
	Version  string    `json:"version"`
	Time     time.Time `json:"time"`
	Findings []Finding `json:"findings"`
}

// Config says what is examined.
type Config struct {
	// Settings are those of the node on this machine, nil without one. Refused is why they can't
	// be used.
	Settings *config.Settings
	Refused  error
	// Client reaches the cluster, nil without a profile. Unreached is why a profile can't be used.
	Client    *admin.Client
	Unreached error
}

// examination is one call of Examine.
type examination struct {
	Config
	Report

	node int // the process of the node on this machine, 0 if none runs
	live *cluster
	ends []limit // of this machine
}

// Examine makes all checks that its configuration allows.
func Examine(ctx context.Context, cfg Config) Report {
	x := &examination{Config: cfg, Report: Report{Version: wire.Version, Time: time.Now().UTC().Truncate(time.Second)}}
	wrong, _ := errors.AsType[config.Problems](cfg.Refused)
	if wrong == nil && cfg.Refused != nil {
		wrong = config.Problems{cfg.Refused}
	}
	for _, problem := range wrong {
		x.problem("settings", "correct the file of --config", "%v", problem)
	}
	if s := cfg.Settings; s != nil {
		x.node, _ = process.Holder(pidFile(s))
		x.settings(s)
		x.memory(s)
		x.files()
		x.certificates(s)
		x.keys(ctx, s)
		x.models(s)
		x.ports(ctx, s)
		x.seeds(ctx, s)
		x.disk(s)
	}
	x.machine()
	if cfg.Client != nil {
		x.cluster(ctx)
	}
	if cfg.Unreached != nil {
		x.problem("cluster", "correct the profile, or name another one with --profile", "%v", cfg.Unreached)
	}
	x.next()
	return x.Report
}

func (r *Report) add(level Level, check, do, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{level, check, fmt.Sprintf(format, args...), do})
}

func (r *Report) ok(check, format string, args ...any) { r.add(OK, check, "", format, args...) }

func (r *Report) warn(check, do, format string, args ...any) {
	r.add(Warning, check, do, format, args...)
}

func (r *Report) problem(check, do, format string, args ...any) {
	r.add(Problem, check, do, format, args...)
}

// Worst returns the worst level of a finding.
func (r Report) Worst() Level {
	worst := OK
	for _, f := range r.Findings {
		if f.Level == Problem || f.Level == Warning && worst == OK {
			worst = f.Level
		}
	}
	return worst
}

// Write prints a report, a line for each finding, broken at the width of a screen.
func Write(w io.Writer, r Report) error {
	counts := map[Level]int{}
	for _, f := range r.Findings {
		counts[f.Level]++
		text := f.Text
		if f.Do != "" {
			text += ": " + f.Do
		}
		const indent = 23
		if _, err := fmt.Fprintf(w, "%-8s %-13s %s\n", f.Level, f.Check, table.Wrap(strings.Fields(text), " ", indent)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%d checks, problems: %d, warnings: %d\n", len(r.Findings), counts[Problem], counts[Warning])
	return err
}
