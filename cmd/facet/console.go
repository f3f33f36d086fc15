package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/console"
	"facet/cmd/facet/dev"
	"facet/cmd/facet/tenant"
)

func newConsole() *cobra.Command {
	var where tenant.Connection
	var cfg console.Config
	var operator string
	cmd := &cobra.Command{
		Use:   "console",
		Short: "the web console, on this machine, with your profile's keys",
		Long: "Serve the web console on this machine's loopback interface until Ctrl-C, and print its address, which works\n" +
			"once. Requests of the pages are signed with the tenant's profile, so the browser needs no key and no\n" +
			"certificate. When a node dies, the next one answers.\n\n" +
			"With an operator's profile the pages also show the cluster. A cluster of facet dev has one. An access key that\n" +
			"does not manage the tenant needs the API key of an application: a reviewer's shows its cases.",
		Example: "  facet console\n  facet console --profile acme.json --operator operator.yaml\n" +
			"  facet console --operator operator.yaml\n  facet console --profile anna.json --api-key KEY",
		Args: cli.Args(cobra.NoArgs),
	}
	f := cmd.Flags()
	where.Flags(f)
	where.PurposeFlag(f)
	tenant.APIKeyFlag(f, &cfg.APIKey)
	f.StringVar(&operator, "operator", "", "an operator's profile; alone it shows the cluster only")
	f.IntVar(&cfg.Port, "port", 0, "port on 127.0.0.1 (default: a free one)")
	open := f.Bool("open", false, "open the address in a browser; other users of this machine may then see it for a moment")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cfg.Port < 0 || cfg.Port > 65535 {
			return cli.Misuse(errors.New("--port must be 0 to 65535"))
		}
		if operator == "" || f.Changed("profile") || f.Changed("dir") {
			name, profile, err := where.Read()
			if err != nil {
				return err
			}
			if cfg.Tenant, err = client.New(profile); err != nil {
				return fmt.Errorf("open the profile %s: %w", name, err)
			}
			cfg.AccessKey, cfg.Region, cfg.Nodes = profile.AccessKey, profile.Region, profile.BaseURLs
			cfg.APIKey = tenant.APIKey(cfg.APIKey, profile)
			if err := ofDev(&cfg, name); err != nil {
				return err
			}
		}
		if operator != "" {
			where, err := profileTarget(operator)
			if err != nil {
				return err
			}
			if err := withStatus(&cfg, where); err != nil {
				return err
			}
		}
		return serveConsole(cmd, cfg, *open)
	}
	return cmd
}

// ofDev adds the cluster's state if a tenant's profile is that of a cluster of facet dev.
func ofDev(cfg *console.Config, profile string) error {
	where, err := dev.Admin(filepath.Dir(profile))
	if errors.Is(err, dev.ErrNoCluster) {
		return nil
	}
	if err != nil {
		return err
	}
	return withStatus(cfg, where)
}

// withStatus adds the state of the cluster at where.
func withStatus(cfg *console.Config, where admin.Target) error {
	c, err := admin.NewClient(where)
	if err != nil {
		return err
	}
	cfg.Status, cfg.Receipt = c.Status, c.Receipt
	return nil
}

// serveConsole serves the console until the command ends.
func serveConsole(cmd *cobra.Command, cfg console.Config, open bool) error {
	cfg.Out = cmd.OutOrStdout()
	s, err := console.Open(cfg)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "the console is at this address, which works once; Ctrl-C ends it\n\n  %s\n\n", s.Address())
	if open {
		if err := browse(cmd, s.Address()); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "facet: no browser could be started (%v): open the address yourself\n", err)
		}
	}
	<-cmd.Context().Done()
	return s.Close()
}

// browse opens an address in the person's browser.
func browse(cmd *cobra.Command, address string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	return exec.CommandContext(cmd.Context(), program, address).Run()
}
