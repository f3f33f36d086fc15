package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/node/wire"
)

// quotaDefault is the word for the default of a quota.
const quotaDefault = "default"

func newTenantShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [NAME]",
		Short: "quotas of a tenant, or of all, and what is used of them",
		Args:  cli.Args(cobra.MaximumNArgs(1)),
	}
	asJSON := cli.JSONFlag(cmd)
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, args []string) error {
		list, err := c.Tenants(cmd.Context())
		if err != nil {
			return fmt.Errorf("list tenants: %w", err)
		}
		if len(args) > 0 {
			list = slices.DeleteFunc(list, func(t wire.Tenant) bool { return t.Name != args[0] })
			if len(list) == 0 {
				return fmt.Errorf("there is no tenant %q", args[0])
			}
		}
		if *asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), list)
		}
		return writeTenants(cmd.OutOrStdout(), list)
	})
}

func newTenantSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME QUOTA=VALUE…",
		Short: "set quotas of a tenant; the value \"" + quotaDefault + "\" takes one back",
		Long: "Set quotas of a tenant. A value is a number from 1 on, or \"" + quotaDefault + "\". What the tenant has beyond a quota\n" +
			"stays and works; the tenant gets no more of it. facet tenant show lists the quotas.",
		Example: "  facet tenant set bank galleries=20 subjects=1000000 requests=" + quotaDefault,
		Args:    cli.Args(cobra.MinimumNArgs(2)),
	}
	asJSON := cli.JSONFlag(cmd)
	var order wire.SetTenant
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		order.Name = args[0]
		order.Quotas, err = readQuotas(args[1:])
		return err
	}
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		t, err := c.SetTenant(cmd.Context(), order)
		if err != nil {
			return fmt.Errorf("set quotas: %w", err)
		}
		if *asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), t)
		}
		return writeTenants(cmd.OutOrStdout(), []wire.Tenant{t})
	})
}

// readQuotas reads arguments of the form QUOTA=VALUE.
func readQuotas(args []string) (map[string]uint64, error) {
	quotas := map[string]uint64{}
	for _, arg := range args {
		name, text, _ := strings.Cut(arg, "=")
		if text == quotaDefault {
			quotas[name] = 0
			continue
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n == 0 {
			return nil, cli.Misuse(errors.New("give each quota as NAME=NUMBER, from 1 on, or NAME=" + quotaDefault + ", not " + strconv.Quote(arg)))
		}
		quotas[name] = n
	}
	return quotas, nil
}

func writeTenants(w io.Writer, list []wire.Tenant) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TENANT\tQUOTA\tUSED\tMOST\tSET BY")
	for _, t := range list {
		for _, q := range t.Quotas {
			by := quotaDefault
			if q.Own {
				by = "operator"
			}
			used := strconv.FormatUint(q.Used, 10)
			if q.Incomplete {
				used += " or more"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", t.Name, q.Name, used, q.Most, by)
		}
	}
	return table.Flush()
}
