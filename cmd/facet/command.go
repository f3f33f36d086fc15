package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/node/wire"
)

// onCluster completes a command that calls a cluster. It adds the flags that name
// the cluster.
func onCluster(cmd *cobra.Command, run func(cmd *cobra.Command, c *admin.Client, args []string) error) *cobra.Command {
	var t target
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		where, err := t.find()
		if err != nil {
			return err
		}
		c, err := admin.NewClient(where)
		if err != nil {
			return err
		}
		return run(cmd, c, args)
	}
	return cmd
}

// onStatus is onCluster for a command that needs the cluster's status.
func onStatus(cmd *cobra.Command, run func(cmd *cobra.Command, c *admin.Client, s wire.Status, args []string) error) *cobra.Command {
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, args []string) error {
		s, err := c.Status(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd, c, s, args)
	})
}

// needFlags returns the PreRunE of a command that needs a value for each of these
// flags.
func needFlags(names ...string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		for _, name := range names {
			if cmd.Flag(name).Value.String() == "" {
				return cli.Misuse(fmt.Errorf("--%s is needed", name))
			}
		}
		return nil
	}
}
