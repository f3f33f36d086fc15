package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/config"
	"facet/cmd/facet/doctor"
)

// examined has the flags that name what is examined.
type examined struct {
	target

	settings string
}

func (x *examined) flags(cmd *cobra.Command) {
	x.target.flags(cmd.Flags())
	cmd.Flags().StringVar(&x.settings, config.FileFlag, "", "settings of the node on this machine, to check the machine for it; a profile.yaml beside it names the cluster")
}

// named reports whether a flag or the environment names a cluster.
func (x *examined) named() bool {
	return x.profile != "" || len(x.addresses) > 0 || x.set.Changed("dir") || os.Getenv(profileVariable) != ""
}

// read returns what to examine. With settings, a cluster that nobody has named is left out.
func (x *examined) read() (cfg doctor.Config, err error) {
	if x.settings != "" {
		s, err := config.LoadFile(x.settings, os.Environ())
		if cfg.Refused = err; err == nil {
			cfg.Settings = &s
		}
		beside := filepath.Join(filepath.Dir(x.settings), "profile.yaml")
		if _, err := os.Stat(beside); err == nil && x.profile == "" && len(x.addresses) == 0 && !x.set.Changed("dir") {
			x.profile = beside
		}
	}
	where, err := x.find()
	if err == nil {
		cfg.Client, err = admin.NewClient(where)
	}
	if _, misused := errors.AsType[*cli.UsageError](err); err == nil || misused || x.settings == "" {
		return cfg, err
	}
	if x.named() {
		cfg.Unreached = err
	}
	return cfg, nil
}

func newDoctor() *cobra.Command {
	var x examined
	cmd := &cobra.Command{
		Use: "doctor", Short: "check this machine, the node on it and the cluster, and say what to do",
		Long: "Check this machine, the node on it and the cluster, before and while the node runs: settings, certificates, keys,\n" +
			"models, ports, disk, clock, processor, versions, and what would break next. A line for each check says ok, warning\n" +
			"or problem, and what to do. With --config it checks the node of these settings, which may be stopped. It changes\n" +
			"nothing, and takes a few seconds.\n\n" +
			"The exit status is 0 if all is well, 1 for problems, and 3 for warnings only.",
		Example: "  facet doctor --config /var/lib/facet/facet.yaml\n  facet doctor --profile profile.yaml -o json",
		Args:    cli.Args(cobra.NoArgs),
	}
	x.flags(cmd)
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := x.read()
		if err != nil {
			return err
		}
		r := doctor.Examine(cmd.Context(), cfg)
		if *asJSON {
			err = cli.PrintJSON(cmd.OutOrStdout(), r)
		} else {
			err = doctor.Write(cmd.OutOrStdout(), r)
		}
		switch {
		case err != nil:
			return err
		case r.Worst() == doctor.Problem:
			return &cli.ExitError{Status: cli.ExitFailed}
		case r.Worst() == doctor.Warning:
			return &cli.ExitError{Status: cli.ExitWarned}
		}
		return nil
	}
	return cmd
}
