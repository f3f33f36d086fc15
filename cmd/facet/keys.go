package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"facet/node/wire"
	"facet/router"
)

// keyFlags contains the flags of the commands about access keys.
type keyFlags struct {
	target
	tenant, role string
	asJSON       bool
}

// newKeyCommand adds the common flags to a command.
func (k *keyFlags) newKeyCommand(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	k.flags(f)
	f.StringVar(&k.tenant, "tenant", "", "name of the tenant; needed")
	f.BoolVar(&k.asJSON, "json", false, "print JSON")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if k.tenant == "" {
			return &usageError{errors.New("--tenant is needed")}
		}
		return run(cmd, args)
	}
	return cmd
}

func (k *keyFlags) roleFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&k.role, "role", router.RoleAdmin.String(), "admin (everything), biometric (all but galleries and applications) or read-only")
	return cmd
}

func newKey() *cobra.Command {
	cmd := &cobra.Command{
		Use: "key", Short: "access keys of a tenant",
		Long: "Access keys of a tenant. A tenant may have two of each role in use: to change one without a break,\n" +
			"rotate it, give clients the new pair, and revoke the old key, which \"rotate\" names.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newKeyMake("create", "make an access key; the secret is shown once"),
		newKeyMake("rotate", "make a second access key beside the one in use; the secret is shown once"),
		newKeyList(), newKeyRevoke(),
	)
	return cmd
}

// newKeyMake returns the command create or rotate.
func newKeyMake(name, short string) *cobra.Command {
	var k keyFlags
	return k.roleFlag(k.newKeyCommand(&cobra.Command{
		Use: name, Short: short, Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := router.ParseRole(k.role); err != nil {
				return &usageError{fmt.Errorf("--role: %w", err)}
			}
			c, err := k.client()
			if err != nil {
				return err
			}
			pair, err := c.NewKey(cmd.Context(), wire.NewKey{Tenant: k.tenant, Role: k.role, Rotate: name == "rotate"})
			if err != nil {
				return fmt.Errorf("%s access key: %w", name, err)
			}
			if k.asJSON {
				return printJSON(cmd.OutOrStdout(), pair)
			}
			return writePair(cmd.OutOrStdout(), pair)
		},
	}))
}

func writePair(w io.Writer, pair wire.KeyPair) error {
	_, err := fmt.Fprintf(w, "tenant      %s\nrole        %s\naccess key  %s\nsecret key  %s\n", pair.Tenant, pair.Role, pair.AccessKey, pair.SecretKey)
	if err != nil || pair.Old == "" {
		return err
	}
	_, err = fmt.Fprintf(w, "when all clients use it: facet key revoke %s --tenant %q\n", pair.Old, pair.Tenant)
	return err
}

func newKeyList() *cobra.Command {
	var k keyFlags
	return k.newKeyCommand(&cobra.Command{
		Use: "list", Short: "list access keys, without their secrets", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := k.client()
			if err != nil {
				return err
			}
			list, err := c.Keys(cmd.Context(), k.tenant)
			if err != nil {
				return fmt.Errorf("list access keys: %w", err)
			}
			if k.asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			return writeKeys(cmd.OutOrStdout(), list)
		},
	})
}

func writeKeys(w io.Writer, list []wire.Key) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ACCESS KEY\tROLE\tSTATE\tCREATED")
	for _, key := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", key.AccessKey, key.Role, key.State, key.Created.Format(time.DateTime+"Z"))
	}
	return table.Flush()
}

func newKeyRevoke() *cobra.Command {
	var k keyFlags
	return k.newKeyCommand(&cobra.Command{
		Use: "revoke KEY", Short: "end an access key: every node refuses it within two seconds", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := k.client()
			if err != nil {
				return err
			}
			if err := c.RevokeKey(cmd.Context(), k.tenant, args[0]); err != nil {
				return fmt.Errorf("revoke access key: %w", err)
			}
			if k.asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]string{"access_key": args[0], "state": wire.KeyRevoked})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "revoked     %s\n", args[0])
			return err
		},
	})
}
