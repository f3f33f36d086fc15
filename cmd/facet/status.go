package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/printable"
	"facet/cmd/facet/process"
)

// watchInterval is how often --watch draws the status.
const watchInterval = 2 * time.Second

// exitOf returns the error with which facet status ends for this health.
func exitOf(h admin.Health) error {
	switch h {
	case admin.Healthy:
		return nil
	case admin.Warned:
		return &cli.ExitError{Status: cli.ExitWarned}
	default:
		return &cli.ExitError{Status: cli.ExitBroken}
	}
}

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "nodes, groups, leaders, lag and warnings",
		Long: "Print nodes, groups, leaders, lag and warnings of a cluster.\n\n" +
			"The exit status is 0 for a healthy cluster and 3 for one with warnings (lines with ! or ~). It is 4 if a part of\n" +
			"the data can't be read or written: no node answers, the cluster is not founded, or a group has no leader.",
		Args: cli.Args(cobra.NoArgs),
	}
	asJSON := cli.JSONFlag(cmd)
	watching := cmd.Flags().BoolP("watch", "w", false, "draw it again every two seconds, until Ctrl-C; it ends with the last exit status")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *asJSON && *watching {
			return cli.Misuse(errors.New("-o json and --watch exclude each other"))
		}
		return nil
	}
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		look := func(ctx context.Context, w io.Writer) error {
			s, err := c.Status(ctx)
			if _, unreachable := errors.AsType[*admin.UnreachableError](err); unreachable {
				return &cli.ExitError{Status: cli.ExitBroken, Err: err}
			}
			if err == nil && *asJSON {
				err = cli.PrintJSON(w, s)
			} else if err == nil {
				err = admin.Write(w, s)
			}
			if err != nil {
				return err
			}
			return exitOf(admin.HealthOf(s))
		}
		if *watching {
			return watch(cmd.Context(), screenOf(cmd.OutOrStdout()), look)
		}
		return look(cmd.Context(), cmd.OutOrStdout())
	})
}

// screen is where a watched text is drawn. With rows it is a terminal, on which each drawing
// replaces the one before.
type screen struct {
	io.Writer
	rows func() int // nil if the drawings follow each other
}

// screenOf returns the screen of w.
func screenOf(w io.Writer) screen {
	f, ok := printable.Raw(w).(*os.File)
	if !ok || !process.IsTerminal(f) {
		return screen{Writer: w}
	}
	return screen{f, func() int { return process.Rows(f) }}
}

// Control sequences of a terminal (ECMA-48, and DEC's private mode 7).
const (
	termHome, termClear      = "\x1b[H", "\x1b[2J"
	termClearLine, termBelow = "\x1b[K", "\x1b[J"
	termWrapOff, termWrapOn  = "\x1b[?7l", "\x1b[?7h"
)

// draw shows text.
func (s screen) draw(text string, at time.Time) error {
	if s.rows == nil {
		_, err := fmt.Fprintf(s, "%s\n%s\n", at.UTC().Format(time.RFC3339), text)
		return err
	}
	lines := strings.SplitAfter(strings.TrimSuffix(printable.Text(text), "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	if room := max(2, s.rows()-2); len(lines) > room { // nodes are above, warnings below
		left := fmt.Sprintf("… %d lines …\n", len(lines)-room)
		lines = slices.Concat(lines[:room/2], []string{left}, lines[len(lines)-(room-room/2):])
	}
	var b strings.Builder
	b.WriteString(termWrapOff + termHome)
	for _, line := range lines {
		b.WriteString(strings.Replace(line, "\n", termClearLine+"\r\n", 1))
	}
	fmt.Fprintf(&b, "every 2 s, last at %s; Ctrl-C ends it"+termClearLine+termBelow+termWrapOn, at.Format(time.TimeOnly))
	_, err := io.WriteString(s, b.String())
	return err
}

// watch draws what look writes until ctx ends, and returns look's last outcome. It goes on
// while no node answers.
func watch(ctx context.Context, s screen, look func(context.Context, io.Writer) error) (last error) {
	if s.rows != nil {
		fmt.Fprint(s, termClear)
		defer fmt.Fprintln(s) // the shell's prompt comes below
	}
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		var b bytes.Buffer
		err := look(ctx, &b)
		if ctx.Err() != nil {
			return last
		}
		if exit, ok := errors.AsType[*cli.ExitError](err); err != nil && !ok {
			return err
		} else if ok && exit.Err != nil {
			fmt.Fprintf(&b, "facet: %v\n", exit.Err)
			err = &cli.ExitError{Status: exit.Status} // it is on the screen
		}
		last = err
		if err := s.draw(b.String(), time.Now()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last
		}
	}
}
