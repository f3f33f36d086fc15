package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"facet/cmd/facet/cli"
	"facet/internal/id"
)

// welcome is what facet prints without a command.
const welcome = `facet registers faces, searches and verifies them, on a cluster of nodes.

  facet dev            run a whole cluster on this machine, to try it
  facet status         show nodes, leaders and warnings of a cluster
  facet cluster init   make the first node of a cluster of several machines

facet help lists all commands, facet help COMMAND explains one.
`

// suggestionDistance is the most letters by which a suggested command differs. In a short word
// it is less than half of the letters.
const suggestionDistance = 2

// newHelp returns the command that explains others.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "list all commands, or explain one",
		RunE: func(help *cobra.Command, args []string) error {
			if _, err := unknownCommand(args); err != nil {
				return err
			}
			cmd, _, err := help.Root().Find(args)
			if err != nil {
				return cli.Misuse(err)
			}
			cmd.InitDefaultHelpFlag() // so that its help shows the flag
			return cmd.Help()
		},
	}
}

// unknownCommand returns an error if args name a command that does not exist, and the command
// below which it was looked for. Cobra takes such a name for an argument, and ignores it beside
// --help.
func unknownCommand(args []string) (*cobra.Command, error) {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // cobra adds it later
		return nil, nil
	}
	cmd, rest, err := newRoot().Find(args) // a tree of its own, whose flags may be parsed
	if err != nil || !cmd.HasSubCommands() {
		return nil, nil // cobra reports err itself
	}
	cmd.InitDefaultHelpFlag()
	_ = cmd.ParseFlags(rest) // cobra reports the error itself
	if cmd.Flags().NArg() == 0 {
		return nil, nil
	}
	name := cmd.Flags().Arg(0)
	if _, err := id.Parse(name); err == nil && cmd.HasParent() && cmd.ValidateArgs(cmd.Flags().Args()) == nil {
		return nil, nil // a subject of facet erase, which has commands below it, too
	}
	text := fmt.Sprintf("there is no command %q", cmd.CommandPath()+" "+name)
	if cmd.HasParent() && cmd.ValidateArgs(cmd.Flags().Args()) == nil {
		text += fmt.Sprintf(", and %q is no subject's id (--external-id takes an id of your own)", name)
	}
	cmd.SuggestionsMinimumDistance = min(suggestionDistance, (len(name)-1)/2)
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		for i, n := range near {
			near[i] = fmt.Sprintf("%q", cmd.CommandPath()+" "+n)
		}
		text += ": do you mean " + strings.Join(near, " or ") + "?"
	}
	return cmd, cli.Misuse(errors.New(text))
}
