package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"facet/cmd/facet/cli"
	"facet/cmd/facet/witness"
)

// witnessInterval is the default pause between two looks at a log.
const witnessInterval = 10 * time.Second

func newAuditWitness() *cobra.Command {
	var cfg witness.Config
	var logs []string
	var ca, signer, name string
	var once bool
	cmd := &cobra.Command{
		Use: "witness --state FOLDER --signer FILE --log KEY@SOURCE…", Short: "follow logs from elsewhere, and cosign what continues",
		Long: "Follow the checkpoints of one or several audit logs, and cosign each that continues the last one (C2SP's tlog-cosignature).\n" +
			"Run it on a machine that the cluster's operators don't control. A log that was rolled back, forked or rewritten is never\n" +
			"cosigned: a line with ALARM says so, the checkpoint is kept as \"refused\", and the exit status is 1.\n\n" +
			"FOLDER is the state: keep it. A web server may serve it: HASH-OF-THE-ORIGIN/checkpoint for each log, and the witness's\n" +
			"key. SOURCE is a profile with an access key of the role auditor, the https URL of an exported folder, or such a folder.",
		Example: "  facet audit witness --state witness --signer witness.key --name audit.example.com/w1 --log \"$(cat audit.key)@auditor.json\"\n" +
			"  facet audit verify audit --key \"$(cat audit.key)\" --witness witness --witness-key \"$(cat witness/key)\"",
		Args: cli.Args(cobra.NoArgs), PreRunE: needFlags("state", "signer"),
	}
	f := cmd.Flags()
	f.StringVar(&cfg.State, "state", "", "folder of the cosigned checkpoints")
	f.StringVar(&signer, "signer", "", "file with the witness's secret key; with --name it is made when missing")
	f.StringVar(&name, "name", "", "name of a new witness, such as audit.example.com/w1")
	f.StringArrayVar(&logs, "log", nil, "a log: its verifier key, @, and where it is; may be repeated")
	f.StringVar(&ca, "ca", "", "PEM file with the authority of the URLs' certificates")
	f.DurationVar(&cfg.Interval, "interval", witnessInterval, "pause between two looks at a log")
	f.BoolVar(&once, "once", false, "look once, and end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(logs) == 0 || cfg.Interval <= 0 {
			return cli.Misuse(errors.New("name a log with --log, and a positive --interval"))
		}
		for _, text := range logs {
			l, err := witness.ParseLog(cmd.Context(), text, ca)
			if err != nil {
				return err
			}
			cfg.Logs = append(cfg.Logs, l)
		}
		var err error
		if cfg.Key, err = witness.OpenKey(signer, name); err != nil {
			return err
		}
		cfg.Out = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
		return runWitness(cmd.Context(), cfg, once)
	}
	return cmd
}

func runWitness(ctx context.Context, cfg witness.Config, once bool) error {
	w, err := witness.Open(cfg)
	if err != nil {
		return err
	}
	defer func() {
		if err := w.Close(); err != nil {
			cfg.Out.ErrorContext(ctx, "close the state", "err", err)
		}
	}()
	if once {
		err = w.Once(ctx)
	} else {
		cfg.Out.InfoContext(ctx, "following", "logs", len(cfg.Logs), "key", cfg.Key.Public)
		err = w.Run(ctx)
	}
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	return nil
}
