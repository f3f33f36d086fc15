package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"facet/cmd/facet/cli"
	"facet/cmd/facet/debug"
)

func newDebug() *cobra.Command {
	var x examined
	var out string
	cmd := &cobra.Command{
		Use: "debug", Short: "collect states, metrics, logs and profiles of all nodes in one file",
		Long: "Collect states, metrics, the last lines of logs, settings without secrets, and profiles of all nodes that answer\n" +
			"on their operators' ports, and what facet doctor says, in one file (tar.gz, mode 0600). It takes about 20 seconds.\n\n" +
			"The file has no keys, no names of tenants, galleries, tags or people, no images and no templates. It has names and\n" +
			"addresses of nodes. Logs, settings and profiles need the administrator's certificate.",
		Example: "  facet debug --profile profile.yaml --out trouble.tar.gz\n  facet debug --config /var/lib/facet/facet.yaml",
		Args:    cli.Args(cobra.NoArgs),
	}
	x.flags(cmd)
	cmd.Flags().StringVar(&out, "out", "", "name of the new file (default: facet-debug-TIME.tar.gz)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := x.read()
		if err != nil {
			return err
		}
		if cfg.Unreached != nil {
			return cfg.Unreached
		}
		if cfg.Client == nil {
			return errors.New("no cluster is named: name a profile with --profile or " + profileVariable)
		}
		if out == "" {
			out = "facet-debug-" + time.Now().UTC().Format("20060102T150405Z") + ".tar.gz"
		}
		b, err := debug.Collect(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		if err := b.WriteFile(out); err != nil {
			return err
		}
		w := cmd.OutOrStdout()
		for _, m := range b.Manifest.Missing {
			fmt.Fprintln(w, "left out", m)
		}
		_, err = fmt.Fprintf(w, "%s has %d files; facet-debug/manifest.json in it lists them. Look at them before you send it.\n", out, len(b.Manifest.Files))
		return err
	}
	return cmd
}
