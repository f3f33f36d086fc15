package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/node/wire"
	"facet/router"
)

// aboutKeys completes a command about the access keys of a tenant. The checks see its
// flags before a cluster is called.
func aboutKeys(
	cmd *cobra.Command, run func(cmd *cobra.Command, c *admin.Client, k keyFlags, args []string) error, checks ...func() error,
) *cobra.Command {
	tenant := cmd.Flags().String("tenant", "", "name of the tenant; needed")
	asJSON := cli.JSONFlag(cmd)
	tenantGiven := needFlags("tenant")
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		err := tenantGiven(cmd, args)
		for _, check := range checks {
			if err == nil {
				err = check()
			}
		}
		return err
	}
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, args []string) error {
		return run(cmd, c, keyFlags{*tenant, *asJSON}, args)
	})
}

// keyFlags contains the flags of these commands.
type keyFlags struct {
	tenant string
	asJSON bool
}

func newKey() *cobra.Command {
	return cli.Group(
		&cobra.Command{
			Use: "key", Short: "access keys of a tenant",
			Long: "Access keys of a tenant. A tenant may have two of each role in use: to change one without a break,\n" +
				"rotate it, give clients the new pair, and revoke the old key, which \"rotate\" names.",
		},
		newKeyMake("create", "make an access key; the secret is shown once"),
		newKeyMake("rotate", "make a second access key beside the one in use; the secret is shown once"),
		newKeyList(), newKeyRevoke(),
	)
}

// rolesHelp lists the roles.
const rolesHelp = "admin (everything), biometric (all but galleries and applications) or read-only"

// newKeyMake returns the command create or rotate. A first key has no default role: it
// must not allow more than its maker has said.
func newKeyMake(name, short string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: cli.Args(cobra.NoArgs)}
	byDefault, help := "", rolesHelp+"; needed"
	if name == "rotate" {
		byDefault, help = router.RoleAdmin.String(), rolesHelp
	}
	role := cmd.Flags().String("role", byDefault, help)
	var save saving
	save.flag(cmd)
	return aboutKeys(cmd, func(cmd *cobra.Command, c *admin.Client, k keyFlags, _ []string) error {
		if err := save.open(cmd.Context(), c); err != nil {
			return err
		}
		pair, err := c.NewKey(cmd.Context(), wire.NewKey{Tenant: k.tenant, Role: *role, Rotate: name == "rotate"})
		if err != nil {
			return errors.Join(fmt.Errorf("%s access key: %w", name, err), save.drop())
		}
		if pair.SecretKey, err = save.write(pair.AccessKey, pair.SecretKey); err != nil {
			return err
		}
		if k.asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), pair)
		}
		return writePair(cmd.OutOrStdout(), pair, save.describe(pair.SecretKey))
	}, func() error {
		if *role == "" {
			return cli.Misuse(errors.New("--role is needed: " + rolesHelp))
		}
		if _, err := router.ParseRole(*role); err != nil {
			return cli.Misuse(fmt.Errorf("--role: %w", err))
		}
		return nil
	})
}

func writePair(w io.Writer, pair wire.KeyPair, secret string) error {
	_, err := fmt.Fprintf(w, "tenant      %s\nrole        %s\naccess key  %s\n%s", pair.Tenant, pair.Role, pair.AccessKey, secret)
	if err != nil || pair.Old == "" {
		return err
	}
	_, err = fmt.Fprintf(w, "when all clients use it: facet key revoke %s --tenant %q\n", pair.Old, pair.Tenant)
	return err
}

func newKeyList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "list access keys, without their secrets", Args: cli.Args(cobra.NoArgs)}
	return aboutKeys(cmd, func(cmd *cobra.Command, c *admin.Client, k keyFlags, _ []string) error {
		list, err := c.Keys(cmd.Context(), k.tenant)
		if err != nil {
			return fmt.Errorf("list access keys: %w", err)
		}
		if k.asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), list)
		}
		return writeKeys(cmd.OutOrStdout(), list)
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
	cmd := &cobra.Command{Use: "revoke KEY", Short: "revoke an access key: every node refuses it within two seconds", Args: cli.Args(cobra.ExactArgs(1))}
	return aboutKeys(cmd, func(cmd *cobra.Command, c *admin.Client, k keyFlags, args []string) error {
		if err := c.RevokeKey(cmd.Context(), k.tenant, args[0]); err != nil {
			return fmt.Errorf("revoke access key: %w", err)
		}
		if k.asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"access_key": args[0], "state": wire.KeyRevoked})
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "revoked     %s\n", args[0])
		return err
	})
}
