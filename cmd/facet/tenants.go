package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/table"
	"facet/node/wire"
)

// quotaDefault is the word for the default of a quota.
const quotaDefault = "default"

func newTenant() *cobra.Command {
	return cli.Group(
		&cobra.Command{Use: "tenant", Short: "tenants: their first access keys, quotas and states"},
		newTenantCreate(), newTenantList(), newTenantShow(), newTenantSet(), newTenantRecord(),
		newTenantState("disable", "refuse all requests of a tenant; its data stays", wire.TenantDisabled),
		newTenantState("enable", "let a disabled tenant work again", wire.TenantActive), newTenantDelete(),
	)
}

func newTenantCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "create a tenant and its first access key; the secret is shown once",
		Long: "Create a tenant and its first access key, an admin's. The secret is shown once, or written with --save into a\n" +
			"profile: a file with the nodes' URLs, their authority and the access key. The tenant's commands need no more.",
		Example: "  facet tenant create bank --save bank.json\n  facet gallery create staff --size 5000 --profile bank.json",
		Args:    cli.Args(cobra.ExactArgs(1)),
	}
	var save saving
	save.flag(cmd)
	asJSON := cli.JSONFlag(cmd)
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, args []string) error {
		if err := save.open(cmd.Context(), c); err != nil {
			return err
		}
		keys, err := c.CreateTenant(cmd.Context(), args[0])
		if err != nil {
			return errors.Join(fmt.Errorf("create tenant: %w", err), save.drop())
		}
		secret, err := save.write(keys.AccessKey, keys.SecretKey)
		if err != nil {
			return err
		}
		keys.SecretKey = secret
		if *asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), keys)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "tenant      %s (%s)\naccess key  %s\n%s",
			keys.Name, keys.Tenant, keys.AccessKey, save.describe(secret))
		if err == nil && save.name != "" {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "next        facet gallery create NAME --size FACES --profile %s\n", save.name)
		}
		return err
	})
}

func newTenantList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "list tenants", Args: cli.Args(cobra.NoArgs),
		Example: "  facet tenant list",
	}
	asJSON := cli.JSONFlag(cmd)
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		list, err := c.Tenants(cmd.Context())
		if err != nil {
			return fmt.Errorf("list tenants: %w", err)
		}
		if *asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), list)
		}
		if len(list) == 0 {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "there is no tenant yet: facet tenant create NAME --save FILE")
			return err
		}
		return table.Write(cmd.OutOrStdout(), func(limit int) []table.Row {
			rows := []table.Row{{Cells: []string{"TENANT", "STATE", "GALLERIES", "ROOM", "KEYS", "ID"}}}
			for _, t := range list {
				rows = append(rows, table.Row{Cells: []string{
					table.Shorten(t.Name, limit), t.State, used(t, "galleries"), used(t, "subjects"), used(t, "accessKeys"), t.Tenant.String(),
				}})
			}
			return rows
		})
	})
}

// used returns what a tenant has used of a quota.
func used(t wire.Tenant, quota string) string {
	for _, q := range t.Quotas {
		if q.Name == quota {
			return strconv.FormatUint(q.Used, 10)
		}
	}
	return "-"
}

// newTenantState returns the command that sets a state.
func newTenantState(name, short, state string) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " NAME", Short: short, Args: cli.Args(cobra.ExactArgs(1)),
		Long: "Disable a tenant or enable it again. Every node refuses the requests of a disabled tenant with 403 within two\n" +
			"seconds, and its jobs rest. Nothing of its data is lost.",
		Example: "  facet tenant " + name + " bank",
	}
	asJSON := cli.JSONFlag(cmd)
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, args []string) error {
		o := wire.SetTenantState{Name: args[0], State: state}
		if err := c.SetTenantState(cmd.Context(), o); err != nil {
			return fmt.Errorf("%s tenant: %w", name, err)
		}
		if *asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), o)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "the tenant %q is %s\n", o.Name, state)
		return err
	})
}

func newTenantDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "delete a tenant with all its galleries, applications and access keys", Args: cli.Args(cobra.ExactArgs(1)),
		Long: "Delete a tenant with all its galleries, applications and access keys, for good. It asks for the tenant's name.\n" +
			"From then on every request of the tenant is refused. If the command ends midway, the cluster goes on by itself,\n" +
			"and the same command waits for the end. Backups and the tenant's files in the object store stay.",
		Example: "  facet tenant delete bank\n  facet tenant delete bank --yes bank   # in a script",
	}
	confirm := cli.ConfirmFlag(cmd)
	asJSON := cli.JSONFlag(cmd)
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, args []string) error {
		list, err := c.Tenants(cmd.Context())
		if err != nil {
			return fmt.Errorf("delete tenant: %w", err)
		}
		i := slices.IndexFunc(list, func(t wire.Tenant) bool { return t.Name == args[0] })
		if i < 0 {
			return fmt.Errorf("there is no tenant %q", args[0])
		}
		t := list[i]
		what := fmt.Sprintf("the tenant %q (%s) with %s galleries for %s faces and %s access keys", t.Name, t.State, used(t, "galleries"), used(t, "subjects"), used(t, "accessKeys"))
		if err := confirm.Ask(cmd.Context(), what, t.Name); err != nil {
			return err
		}
		if err := eraseTenant(cmd, c, t.Name); err != nil {
			return fmt.Errorf("delete tenant: %w; the same command goes on", err)
		}
		if *asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"name": t.Name, "tenant": t.Tenant, "deleted": true})
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "the tenant %q is deleted\n", t.Name)
		return err
	})
}

// eraseTenant orders the deletion of a tenant until no gallery is left.
func eraseTenant(cmd *cobra.Command, c *admin.Client, name string) error {
	for began := false; ; began = true {
		d, err := c.DeleteTenant(cmd.Context(), name)
		if e, ok := errors.AsType[*admin.AnswerError](err); ok && began && e.Status == http.StatusNotFound {
			return nil // the cluster has ended it meanwhile
		}
		if err != nil || d.Left == 0 {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%d galleries are left\n", d.Left)
	}
}

func newTenantShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show [NAME]",
		Short:   "quotas of a tenant, or of all, and what is used of them",
		Example: "  facet tenant show bank",
		Args:    cli.Args(cobra.MaximumNArgs(1)),
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
		Use:   "set NAME [QUOTA=VALUE…]",
		Short: "set quotas and the audit of a tenant; the value \"" + quotaDefault + "\" takes a quota back",
		Long: "Set quotas of a tenant. A value is a number from 1 on, or \"" + quotaDefault + "\". What the tenant has beyond a quota\n" +
			"stays and works; the tenant gets no more of it. facet tenant show lists the quotas.\n\n" +
			"With --audit strict a record of each request is on a majority of nodes before the answer. With best-effort it\n" +
			"is on the disk of the node that answers. off keeps no records; those of before stay until their days have passed.",
		Example: "  facet tenant set bank galleries=20 subjects=1000000 requests=" + quotaDefault + "\n  facet tenant set bank --audit strict --audit-days 400",
		Args:    cli.Args(cobra.MinimumNArgs(1)),
	}
	var kept wire.Audit
	cmd.Flags().StringVar(&kept.Mode, "audit", "", "keep a record of each request: best-effort, strict or off")
	cmd.Flags().Uint32Var(&kept.Days, "audit-days", 0, "days that records keep their contents (default: as now; 184 for a tenant that never had another number)")
	asJSON := cli.JSONFlag(cmd)
	var order wire.SetTenant
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		order.Name = args[0]
		order.Quotas, err = readQuotas(args[1:])
		switch {
		case err != nil:
			return err
		case kept.Mode != "":
			order.Audit = &kept
		case kept.Days > 0:
			return cli.Misuse(errors.New("give --audit with --audit-days"))
		case len(order.Quotas) == 0:
			return cli.Misuse(errors.New("give QUOTA=VALUE or --audit"))
		}
		return nil
	}
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		t, err := c.SetTenant(cmd.Context(), order)
		if err != nil {
			return fmt.Errorf("set quotas or audit: %w", err)
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
	rows := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, "TENANT\tQUOTA\tUSED\tMOST\tSET BY")
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
			most := strconv.FormatUint(q.Most, 10)
			if q.Unlimited {
				most = "unlimited"
			}
			fmt.Fprintf(rows, "%s\t%s\t%s\t%s\t%s\n", t.Name, q.Name, used, most, by)
		}
		fmt.Fprintf(rows, "%s\taudit\t\t%s, %d days\t\n", t.Name, t.Audit.Mode, t.Audit.Days)
	}
	return rows.Flush()
}
