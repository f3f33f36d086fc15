package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"facet/cmd/facet/cli"
	"facet/cmd/facet/config"
	"facet/cmd/facet/console"
	"facet/cmd/facet/demo"
	"facet/cmd/facet/dev"
	"facet/cmd/facet/printable"
	"facet/cmd/facet/serve"
	"facet/node/wire"
)

const devDir = "./dev"

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run one node",
		Long: "Run one node until SIGINT or SIGTERM; a second signal ends it at once. On SIGHUP a node without a\n" +
			"terminal, a service, reads its settings again and takes over what it can without a restart.\n\n" +
			"A setting comes from its flag, else from its variable (--peer-address is FACET_PEER_ADDRESS),\n" +
			"else from the YAML file (peer-address: …), else from its default.",
		Args: cli.Args(cobra.NoArgs),
	}
	config.Flags(cmd.Flags())
	check := cmd.Flags().Bool("check", false, "check the settings and the files that they name, and don't run the node")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown := config.UnknownFlags(cmd.Flags(), os.Args[1:]); unknown != nil {
			err = unknown
		}
		return cli.FlagError(cmd, err)
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		reload := serve.Reload{Hangups: serve.Hangups(), Load: func() (config.Settings, error) { return config.Load(cmd.Flags(), os.Environ()) }}
		s, err := reload.Load()
		if err == nil && *check {
			err = serve.Check(cmd.Context(), s)
		}
		if err != nil {
			return cli.Misuse(err)
		}
		if *check {
			for _, doubt := range s.Doubts {
				fmt.Fprintln(cmd.ErrOrStderr(), doubt)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "the settings are right, and the files that they name can be read; facet doctor examines the machine")
			return err
		}
		return serve.Run(cmd.Context(), s, reload, os.Stderr)
	}
	return cmd
}

func newDev() *cobra.Command {
	var cfg dev.Config
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "run a whole cluster on this machine",
		Long: "Run a cluster of nodes on this machine's loopback interface, with certificates, keys and a tenant,\n" +
			"all in one folder. It can be stopped and started again with its data. How to reach it is in\n" +
			"DIR/dev.json while it runs.",
		Args: cli.Args(cobra.NoArgs),
	}
	cfg.Assets = config.AssetsDefault()
	f := cmd.Flags()
	f.StringVar(&cfg.Dir, "dir", devDir, "folder of the cluster")
	f.IntVar(&cfg.Nodes, "nodes", 0, fmt.Sprintf("number of nodes (default: as founded, %d at first)", dev.NodesDefault))
	f.IntVar(&cfg.Shards, "shards", 0, fmt.Sprintf("number of shards (default: as founded, %d at first)", dev.ShardsDefault))
	f.StringVar(&cfg.Assets.Models, "models", cfg.Assets.Models, "folder of a model pack, or of packs: a new cluster gets the pack sface, a node takes that of its cluster")
	libraryFlags(f, &cfg.Assets.ONNXRuntime, &cfg.Assets.SHA256)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range []string{"nodes", "shards"} {
			if n, err := f.GetInt(name); f.Changed(name) && (err != nil || n < 1) {
				return cli.Misuse(fmt.Errorf("--%s must be 1 or more", name))
			}
		}
		return runDev(cmd.Context(), cfg)
	}
	return cmd
}

func runDev(ctx context.Context, cfg dev.Config) error {
	var err error
	if cfg.Binary, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	cfg.Out = printable.Writer{W: os.Stdout}
	cluster, err := dev.Open(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return nil // a signal stopped it while it started
		}
		return err
	}
	pages, err := console.OpenDev(cluster, cfg.Out)
	if err != nil {
		return errors.Join(err, cluster.Close())
	}
	for _, n := range cluster.Info().Nodes {
		fmt.Fprintf(cfg.Out, "  %s  %s  process %d\n", n.Name, n.URL, n.PID)
	}
	fmt.Fprintf(cfg.Out, "all nodes are ready; addresses, keys and certificate are in %s; Ctrl-C stops the cluster\n", filepath.Join(cfg.Dir, "dev.json"))
	fmt.Fprintf(cfg.Out, "open the console in a browser, by an address that works once:\n\n  %s\n\n", pages.Address())
	<-ctx.Done()
	fmt.Fprintln(cfg.Out, "stopping")
	return errors.Join(pages.Close(), cluster.Close())
}

func newDemo() *cobra.Command {
	assets := config.AssetsDefault()
	cfg := demo.Config{Assets: assets, Out: os.Stdout}
	cmd := &cobra.Command{
		Use:    "demo",
		Hidden: true, // it needs the photos of a source tree; "make demo" runs it
		Short:  "a cluster that matches real faces, told as a story",
		Long: "Start a cluster of three nodes, enrol sample photos, search, kill a node, and tell it as a story.\n" +
			"On a terminal the cluster keeps running until Ctrl-C, unless DEMO_EXIT=1 is set.",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if cfg.Binary, err = os.Executable(); err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			cfg.Stay = demo.StayDefault()
			return demo.Run(cmd.Context(), cfg)
		},
	}
	cmd.Flags().StringVar(&cfg.Dir, "dir", "./demo-data", "folder of the cluster; an earlier demo in it is replaced")
	cmd.Flags().StringVar(&cfg.Photos, "photos", assets.Photos, "folder with the sample photos")
	return cmd
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
}

// version returns the version with the commit, Go's version and the platform.
func version() string {
	return fmt.Sprintf("facet %s%s %s %s/%s", wire.Version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// revision returns the commit that this program was built from, if it is known.
func revision() string {
	if r := wire.Revision(); len(r) >= 12 {
		return " (" + r[:12] + ")"
	}
	return ""
}
