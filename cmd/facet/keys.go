package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
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
			Long: "Access keys of a tenant. A holder, a person or a device that you name, may have two of each role in use:\n" +
				"to change one without a break, rotate it, give clients the new pair, and revoke the old key, which \"rotate\"\n" +
				"names. So may those without a holder's name together.",
		},
		newKeyMake("create", "make an access key; the secret is shown once"),
		newKeyMake("rotate", "make a second access key beside the one in use; the secret is shown once"),
		newKeyList(), newKeyRevoke(),
	)
}

// rolesHelp lists the roles.
const rolesHelp = "admin (everything), biometric (all but galleries and applications), read-only, " +
	"enrol-only (register), search-only (search), reviewer (verdicts on doubtful matches) or auditor (the audit log)"

// newKeyMake returns the command create or rotate. A first key has no default role: it
// must not allow more than its maker has said.
func newKeyMake(name, short string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: cli.Args(cobra.NoArgs)}
	byDefault, help := "", rolesHelp+"; needed"
	if name == "rotate" {
		byDefault, help = router.RoleAdmin.String(), rolesHelp
	}
	role := cmd.Flags().String("role", byDefault, help)
	var terms keyTerms
	terms.flags(cmd, name)
	var save saving
	save.flag(cmd)
	return aboutKeys(cmd, func(cmd *cobra.Command, c *admin.Client, k keyFlags, _ []string) error {
		if err := save.open(cmd.Context(), c); err != nil {
			return err
		}
		pair, err := c.NewKey(cmd.Context(), wire.NewKey{Tenant: k.tenant, Role: *role, KeyTerms: terms.KeyTerms, Rotate: name == "rotate"})
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
		return terms.read(time.Now())
	})
}

// keyTerms contains the flags that bind an access key.
type keyTerms struct {
	wire.KeyTerms
	until string
}

// flags adds the flags. A successor has the galleries and networks of the key before.
func (t *keyTerms) flags(cmd *cobra.Command, name string) {
	f := cmd.Flags()
	if f.StringVar(&t.Holder, "holder", "", "person or device that has the key"); name == "create" {
		f.StringSliceVar(&t.Galleries, "gallery", nil, "gallery, by name, that the key may use; give it again for more (default all; not for admin and auditor)")
		f.StringSliceVar(&t.Networks, "network", nil, "network, such as 10.1.0.0/16, or address that requests may come from; give it again for more (default all)")
	}
	f.StringVar(&t.until, "until", "", "end of the key: a date, whose day in UTC is its last, or a time such as 2027-01-31T18:00:00Z (default never)")
}

// read reads the end of the key.
func (t *keyTerms) read(now time.Time) error {
	if t.until == "" {
		return nil
	}
	end, err := time.Parse(time.DateOnly, t.until)
	if err == nil {
		end = end.AddDate(0, 0, 1)
	} else if end, err = time.Parse(time.RFC3339, t.until); err != nil {
		return cli.Misuse(fmt.Errorf("--until: %q is neither a date such as 2027-01-31 nor a time such as 2027-01-31T18:00:00Z", t.until))
	}
	if t.Ends = &end; !end.After(now) {
		return cli.Misuse(fmt.Errorf("--until: %s is over", t.until))
	}
	return nil
}

func writePair(w io.Writer, pair wire.KeyPair, secret string) error {
	var lines strings.Builder
	fmt.Fprintf(&lines, "tenant      %s\nrole        %s\n", pair.Tenant, pair.Role)
	for _, l := range [][2]string{
		{"holder", pair.Holder}, {"galleries", strings.Join(pair.Galleries, ", ")}, {"networks", strings.Join(pair.Networks, ", ")}, {"ends", day(pair.End())},
	} {
		if l[1] != "" {
			fmt.Fprintf(&lines, "%-10s  %s\n", l[0], l[1])
		}
	}
	_, err := fmt.Fprintf(w, "%saccess key  %s\n%s", lines.String(), pair.AccessKey, secret)
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
	fmt.Fprintln(table, "ACCESS KEY\tROLE\tHOLDER\tSTATE\tCREATED\tLAST USE\tENDS\tONLY")
	for _, key := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", key.AccessKey, key.Role, orDash(key.Holder), key.State, day(key.Created),
			orDash(day(key.Used)), orDash(day(key.End())), orDash(strings.Join(slices.Concat(key.Galleries, key.Networks), ", ")))
	}
	return table.Flush()
}

func orDash(text string) string { return cmp.Or(text, "-") }

// day returns a time for people, or "" for the zero time.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateTime + "Z")
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
