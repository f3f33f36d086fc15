// Package cli has what the commands of facet share: exit statuses, errors of the command line,
// groups of commands, and the form of the output.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// The exit statuses. Each has one meaning in all commands.
const (
	ExitFailed = 1 // the command was tried and failed
	ExitUsage  = 2 // the command line was wrong
	ExitWarned = 3 // facet status, facet doctor: there are warnings
	ExitBroken = 4 // facet status: a part of the data can't be read or written
	// ExitNoMatch: facet search found no candidate, or facet verify another person.
	ExitNoMatch = 5
)

// UsageError is an error of the command line.
type UsageError struct{ err error }

// Misuse returns a *UsageError with this cause.
func Misuse(err error) error { return &UsageError{err} }

// Error returns the text of the cause.
func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.err }

// ExitError ends facet with an exit status of its own. Without a cause it prints nothing.
type ExitError struct {
	Status int
	Err    error
}

// Error returns the text of the cause.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// Args makes a check of arguments name the one that is missing or too many, as a usage error. check
// is one of Cobra's that count, and the command's Use names its arguments.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) != nil {
			return Misuse(miscounted(cmd, args))
		}
		return nil
	}
}

// Group completes a command that only has subcommands.
func Group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.Args = Args(cobra.NoArgs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subcommands...)
	return cmd
}

// JSONFlag adds -o to cmd, and --json, which stands for "-o json". It returns whether the output
// is JSON.
func JSONFlag(cmd *cobra.Command) *bool {
	asJSON := cmd.Flags().Bool("json", false, "the same as -o json")
	cmd.Flags().VarP((*form)(asJSON), "output", "o", "\"table\" for people or \"json\" for programs")
	return asJSON
}

// form is the form of the output: whether it is JSON.
type form bool

// Set reads the value of -o.
func (f *form) Set(text string) error {
	if text != "json" && text != "table" {
		return errors.New("it is table or json")
	}
	*f = text == "json"
	return nil
}

// String returns the value of -o.
func (f *form) String() string {
	if *f {
		return "json"
	}
	return "table"
}

// Type returns the word for a value in a help text.
func (f *form) Type() string { return "FORM" }

// PrintJSON prints v with line breaks and indents.
func PrintJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = fmt.Fprintln(w, string(b))
	return err
}
