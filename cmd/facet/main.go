package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailed = 1 // the command was tried and failed
	exitUsage  = 2 // the command line was wrong
	exitWarned = 3 // facet status: there are warnings
	exitBroken = 4 // facet status: a part of the data can't be read or written
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes one command line and returns its exit code. The first SIGINT,
// SIGTERM or SIGHUP ends the command gracefully, the second at once.
func run(args []string) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // afterwards signals have their default effect
	root := newRoot()
	root.SetArgs(args)
	cmd, err := unknownCommand(args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if err == nil {
		return 0
	}
	exit, hasStatus := errors.AsType[*exitError](err)
	if hasStatus && exit.err == nil {
		return exit.status
	}
	fmt.Fprintf(os.Stderr, "facet: %v\n", err)
	if _, usage := errors.AsType[*usageError](err); usage {
		if !cmd.HasSubCommands() {
			fmt.Fprintf(os.Stderr, "usage: %s\n", cmd.UseLine())
		}
		fmt.Fprintf(os.Stderr, "more:  %s --help\n", cmd.CommandPath())
		return exitUsage
	}
	if hasStatus {
		return exit.status
	}
	return exitFailed
}

// usageError is an error of the command line.
type usageError struct{ err error }

// Error returns the text of the cause.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.err }

// usage turns the errors of an argument check into usage errors.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{err}
		}
		return nil
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "facet",
		Short:         "a face biometric matching service",
		Long:          "facet registers faces, searches and verifies them, on a cluster of nodes that keeps every acknowledged write.",
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // unknownCommand has refused any
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), welcome)
			return err
		},
	}
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newServe(), newDev(), newCluster(), newTenant(), newKey(), newStatus(), newNode(), newShard(), newCerts(), newBackup(), newErase(), newRestore(), newRecover(), newImport(), newDemo(), newBench(), newModels(), newVersion())
	root.InitDefaultHelpFlag()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}
