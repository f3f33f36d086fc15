package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"facet/cmd/facet/cli"
	"facet/cmd/facet/printable"
	"facet/cmd/facet/serve"
	"facet/cmd/facet/tenant"
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes one command line and returns its exit code. The first SIGINT,
// SIGTERM or SIGHUP ends the command gracefully, the second at once. A service reads its settings
// again on SIGHUP.
func run(args []string) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	reads := len(args) > 0 && args[0] == "serve" && serve.TakesHangup()
	if !reads && !signal.Ignored(syscall.SIGHUP) { // nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // afterwards signals have their default effect
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(printable.Writer{W: os.Stdout})
	root.SetErr(printable.Writer{W: os.Stderr})
	cmd, err := unknownCommand(args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if err == nil {
		return 0
	}
	exit, hasStatus := errors.AsType[*cli.ExitError](err)
	if hasStatus && exit.Err == nil {
		return exit.Status
	}
	fmt.Fprintf(root.ErrOrStderr(), "facet: %s\n", cli.Plain(err))
	if _, usage := errors.AsType[*cli.UsageError](err); usage {
		if !cmd.HasSubCommands() {
			fmt.Fprintf(root.ErrOrStderr(), "usage: %s\n", cmd.UseLine())
		}
		fmt.Fprintf(root.ErrOrStderr(), "more:  %s --help\n", cmd.CommandPath())
		return cli.ExitUsage
	}
	if hasStatus {
		return exit.Status
	}
	return cli.ExitFailed
}

// The groups of commands in facet help.
const (
	groupOperator = "operator"
	groupTenant   = "tenant"
)

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
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(newServe(), newDev(), newConsole(), newCluster(), newTenant(), newKey(), newStatus(), newDoctor(), newDebug(), newNode(), newShard(), newCerts(), newBackup(), newErase(), newRestore(), newRecover(), newDemo(), newBench(), newModels(), newVersion())
	root.AddGroup(&cobra.Group{ID: groupOperator, Title: "Nodes and clusters:"}, &cobra.Group{ID: groupTenant, Title: "The work of a tenant:"})
	for _, cmd := range root.Commands() {
		cmd.GroupID = groupOperator
	}
	for _, cmd := range append(tenant.Commands(), newAudit(), newExplainSignature()) {
		cmd.GroupID = groupTenant
		root.AddCommand(cmd)
	}
	complete(root, "")
	root.Version = version()
	root.SetVersionTemplate("{{.Version}}\n")
	root.InitDefaultVersionFlag()
	root.InitDefaultHelpFlag()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}
