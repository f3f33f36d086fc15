package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"facet/cmd/facet/process"
)

// Confirmation is --yes of a command that deletes something for good.
type Confirmation struct{ yes string }

// ConfirmFlag adds --yes to cmd.
func ConfirmFlag(cmd *cobra.Command) *Confirmation {
	c := &Confirmation{}
	cmd.Flags().StringVar(&c.yes, "yes", "", "the name, to delete it without a question")
	return c
}

// Ask returns an error unless --yes is name, or somebody types name on the terminal.
func (c *Confirmation) Ask(ctx context.Context, what, name string) error {
	typed := c.yes
	if typed == "" {
		if !process.IsTerminal(os.Stdin) {
			return Misuse(fmt.Errorf("this deletes %s for good: confirm it with --yes %q", what, name))
		}
		var err error
		if typed, err = process.Ask(ctx, fmt.Sprintf("this deletes %s for good; type the name to confirm: ", what)); err != nil {
			return err
		}
	}
	if typed != name {
		return errors.New("nothing is deleted: the name that was given is not " + fmt.Sprintf("%q", name))
	}
	return nil
}
