package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"facet/cmd/facet/auditing"
	"facet/cmd/facet/cli"
	"facet/internal/tiles"
	"facet/node/audit/entry"
)

// exportPause is the least pause between two lines about the progress of an export.
const exportPause = 5 * time.Second

// newAudit returns the commands about a tenant's audit log.
func newAudit() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "read a tenant's or the cluster's audit log, take it away, check and witness it"}
	return cli.Group(cmd,
		newAuditExport(), newAuditExportAll(), newAuditVerify(), newAuditProve(), newAuditKey(), newAuditWitness(),
		newAuditSearch(), newAuditTail())
}

// auditLog has the flags that name a log.
type auditLog struct {
	place    logPlace
	from, ca string
	key      string
}

func (l *auditLog) flags(f *pflag.FlagSet) {
	l.place.flags(f)
	f.StringVar(&l.from, "from", "", "the log elsewhere: an exported folder, or the https or s3 URL of one (default: that of the profile's tenant)")
	f.StringVar(&l.ca, "ca", "", "PEM file with the authority of the URL's certificate")
}

const keyHelp = "the log's verifier key, as \"facet audit key\" prints it"

func (l *auditLog) keyFlag(f *pflag.FlagSet) {
	f.StringVar(&l.key, "key", "", keyHelp)
}

// open returns the log.
func (l *auditLog) open(ctx context.Context) (auditing.Source, error) {
	if l.from != "" {
		return auditing.OpenSource(ctx, l.from, l.ca)
	}
	if l.place.cluster {
		return l.place.operator()
	}
	c, err := l.place.tenant()
	if err != nil {
		return nil, err
	}
	return auditing.Cluster{Client: c}, nil
}

func newAuditExport() *cobra.Command {
	var l auditLog
	var to string
	cmd := &cobra.Command{
		Use: "export --to FOLDER|URL", Short: "copy the log into a folder or an object store; again: only what is new",
		Long: "Copy a tenant's audit log into a folder, in the form of C2SP's tlog-tiles. It needs an access key of the role auditor.\n" +
			"URL is a folder of an object store: s3://BUCKET/DIR, gs:// or azblob://, with credentials from the environment.\n" +
			"Each entry and tile is checked while it is copied. A further export fetches what is new, and refuses a log that does not\n" +
			"continue the folder's. An interrupted one goes on where it ended.\n\n" +
			"The first export takes the log's key from the cluster, unless --key names it.",
		Example: "  facet audit export --to audit --profile auditor.json\n  facet audit export --to s3://audits/bank?region=eu-west-1 --profile auditor.json\n  facet audit verify audit --key \"$(cat audit.key)\"",
		Args:    cli.Args(cobra.NoArgs), PreRunE: needFlags("to"),
	}
	l.flags(cmd.Flags())
	l.keyFlag(cmd.Flags())
	cmd.Flags().StringVar(&to, "to", "", "folder, which is made when missing, or the URL of one in an object store")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		src, err := l.open(ctx)
		if err != nil {
			return err
		}
		return export(cmd, src, to, l.key)
	}
	return cmd
}

// export copies a log to a place, and says what is there.
func export(cmd *cobra.Command, src auditing.Source, to, key string) error {
	ctx := cmd.Context()
	place, err := auditing.MakePlace(ctx, to)
	if err != nil {
		return err
	}
	defer place.Close()
	if key, err = auditing.FindKey(ctx, key, src, place); err != nil {
		return err
	}
	said := time.Now()
	sum, err := auditing.Export(ctx, src, place, key, func(n int64) {
		if time.Since(said) > exportPause {
			said = time.Now()
			fmt.Fprintf(cmd.ErrOrStderr(), "%d entries\n", n)
		}
	})
	if err != nil {
		return fmt.Errorf("export the audit log: %w", err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has %d entries of %s, %d of them new%s\n", place, sum.Checkpoint.N, sum.Checkpoint.Origin, sum.Checkpoint.N-sum.Before, hashOnly(sum.HashOnly))
	return err
}

func hashOnly(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d entries are proven by hash only", n)
}

// auditCheck has the flags of facet audit verify.
type auditCheck struct {
	key, witness, witnessKey, entry, older, former string
}

func newAuditVerify() *cobra.Command {
	var c auditCheck
	cmd := &cobra.Command{
		Use: "verify FOLDER|URL|PROOF", Short: "check an exported log, or a proof, offline",
		Long: "Check an exported log: every entry, every tile, the root and the signature. Each fault is a line. It calls no cluster.\n" +
			"With --witness, the log must contain what the witness has cosigned: a cut end, a roll-back and a fork are faults.\n" +
			"Entries past the tenant's retention are not in the folder; their hashes are, and are counted.\n\n" +
			"A PROOF is a file of \"facet audit prove\".\n\n" +
			"The exit status is 0 if all is right, and 1 if not.",
		Example: "  facet audit verify audit --key \"$(cat audit.key)\"\n" +
			"  facet audit verify audit --key \"$(cat audit.key)\" --witness witness --witness-key \"$(cat witness/key)\"\n" +
			"  facet audit verify 4711.tlog-proof --key \"$(cat audit.key)\"",
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	f.StringVar(&c.key, "key", "", keyHelp+" (default for a folder: its own, which proves nothing against who made the folder)")
	f.StringVar(&c.witness, "witness", "", "folder of a witness, or a checkpoint that it has cosigned")
	f.StringVar(&c.witnessKey, "witness-key", "", "the witness's verifier key: the file key in its folder")
	f.StringVar(&c.entry, "entry", "", "file with the entry, for a proof without it")
	f.StringVar(&c.former, "former", "", "file to write, with the checkpoint of the log that this one follows after a restoration")
	f.StringVar(&c.older, "older", "", "file with the older checkpoint, for a proof about it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (c.witness == "") != (c.witnessKey == "") {
			return cli.Misuse(errors.New("--witness and --witness-key go together"))
		}
		if auditing.IsURL(args[0]) {
			return c.folder(cmd, args[0])
		}
		info, err := os.Stat(args[0])
		if err != nil {
			return err // it names the file
		}
		if !info.IsDir() {
			return c.proof(cmd, args[0])
		}
		return c.folder(cmd, args[0])
	}
	return cmd
}

// folder checks an exported log.
func (c *auditCheck) folder(cmd *cobra.Command, name string) error {
	ctx := cmd.Context()
	folder, err := auditing.OpenPlace(ctx, name)
	if err != nil {
		return err
	}
	defer folder.Close()
	if c.key == "" {
		if c.key, err = auditing.ReadKey(ctx, folder); err != nil {
			return fmt.Errorf("the folder has no key: name the log's with --key: %w", err)
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "facet: the key is the folder's own: who made the folder could have made both; --key names the log's")
	}
	var witnessed []auditing.Witnessed
	if c.witness != "" {
		w, err := auditing.ReadWitnessed(c.witness, c.key, c.witnessKey)
		if err != nil {
			return err
		}
		witnessed = append(witnessed, w)
	}
	v, err := auditing.Verify(ctx, folder, c.key, witnessed)
	if err != nil {
		return fmt.Errorf("verify %s: %w", folder, err)
	}
	if err := report(cmd, v, witnessed); err != nil {
		return err
	}
	return c.follows(cmd, v.Former)
}

// follows says which log a log follows, and writes its checkpoint into the file of --former.
func (c *auditCheck) follows(cmd *cobra.Command, former string) error {
	if former == "" {
		if c.former != "" {
			return errors.New("the log follows no other one: no record names one, or the record is past its retention")
		}
		return nil
	}
	f, err := tiles.Claimed([]byte(former))
	if err != nil {
		return fmt.Errorf("a record names a log that this one follows: %w", err)
	}
	if c.former != "" {
		if err := os.WriteFile(c.former, []byte(former), 0o600); err != nil {
			return fmt.Errorf("write the former log's checkpoint: %w", err)
		}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "it follows %s, of which a restored backup knew %d entries, root %s\n", f.Origin, f.N, f.Hash)
	return err
}

// report prints what a check has found.
func report(cmd *cobra.Command, v auditing.Verified, witnessed []auditing.Witnessed) error {
	out := cmd.OutOrStdout()
	for _, f := range v.Faults {
		fmt.Fprintln(out, f)
	}
	if v.Further > 0 {
		fmt.Fprintf(out, "and %d further faults\n", v.Further)
	}
	if len(v.Faults) > 0 {
		fmt.Fprintf(out, "NOT VALID: %d faults\n", len(v.Faults)+v.Further)
		return &cli.ExitError{Status: cli.ExitFailed}
	}
	for _, w := range witnessed {
		fmt.Fprintf(out, "it contains the %d entries that %s has seen on %s\n", w.N, w.Witness, w.At.UTC().Format(time.RFC3339))
	}
	_, err := fmt.Fprintf(out, "VALID: %d entries of %s, root %s%s\n", v.Checkpoint.N, v.Checkpoint.Origin, v.Checkpoint.Hash, hashOnly(v.HashOnly))
	return err
}

// proof checks a proof.
func (c *auditCheck) proof(cmd *cobra.Command, name string) error {
	if c.key == "" {
		return cli.Misuse(errors.New("a proof needs --key, " + keyHelp))
	}
	if c.witness != "" {
		return cli.Misuse(errors.New("--witness is for a folder"))
	}
	text, err := auditing.ReadFile(name, auditing.ProofBytesMax)
	if err != nil {
		return err
	}
	if auditing.IsOlder(text) {
		return c.olderProof(cmd, text)
	}
	var entry []byte
	if c.entry != "" {
		if entry, err = auditing.ReadFile(c.entry, auditing.ProofBytesMax); err != nil {
			return err
		}
	}
	p, err := auditing.CheckProof(text, c.key, entry)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "VALID: entry %d of %s, which has %d entries, root %s\n%s\n", p.Index, p.Checkpoint.Origin, p.Checkpoint.N, p.Checkpoint.Hash, shown(p))
	return err
}

// shown returns a proven record as a line of JSON, or its bytes in hex if this version can't read them.
func shown(p auditing.Proven) string {
	r, err := entry.Decode(p.Entry)
	if err != nil {
		return hex.EncodeToString(p.Entry)
	}
	text, err := json.Marshal(r.Show(uint64(p.Index)))
	if err != nil {
		return hex.EncodeToString(p.Entry)
	}
	return string(text)
}

func (c *auditCheck) olderProof(cmd *cobra.Command, text []byte) error {
	if c.older == "" {
		return cli.Misuse(errors.New("this proof is about an older checkpoint: name its file with --older"))
	}
	older, err := auditing.ReadFile(c.older, auditing.ProofBytesMax)
	if err != nil {
		return err
	}
	before, now, err := auditing.CheckOlder(text, older, c.key)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "VALID: the %d entries of %s contain the older %d, root %s\n", now.N, now.Origin, before.N, now.Hash)
	return err
}

func newAuditProve() *cobra.Command {
	var l auditLog
	var to, older string
	cmd := &cobra.Command{
		Use: "prove {ENTRY | --older CHECKPOINT} --to FILE", Short: "write a proof that the log has an entry, or an older state",
		Long: "Write a proof that the log has an entry, in the form of C2SP's tlog-proof, with the entry. facet audit verify checks it\n" +
			"offline, with the log's key alone. --older proves that the log contains the tree of an older checkpoint.",
		Example: "  facet audit prove 4711 --to 4711.tlog-proof\n  facet audit verify 4711.tlog-proof --key \"$(cat audit.key)\"",
		Args:    cli.Args(cobra.MaximumNArgs(1)), PreRunE: needFlags("to"),
	}
	l.flags(cmd.Flags())
	l.keyFlag(cmd.Flags())
	cmd.Flags().StringVar(&to, "to", "", "file of the proof")
	cmd.Flags().StringVar(&older, "older", "", "file with an older checkpoint")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if (older == "") == (len(args) == 0) {
			return cli.Misuse(errors.New("give the number of an entry, or --older"))
		}
		src, err := l.open(ctx)
		if err == nil && l.key == "" {
			l.key, err = auditing.ReadKey(ctx, src)
		}
		if err != nil {
			return err
		}
		text, err := prove(ctx, src, l.key, older, args)
		if err != nil {
			return fmt.Errorf("prove: %w", err)
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return fmt.Errorf("write the proof: %w", err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "proof: %s\n", to)
		return err
	}
	return cmd
}

func prove(ctx context.Context, src auditing.Source, key, older string, args []string) ([]byte, error) {
	if older != "" {
		text, err := auditing.ReadFile(older, auditing.ProofBytesMax)
		if err != nil {
			return nil, err
		}
		return auditing.ProveOlder(ctx, src, key, text)
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || n < 0 {
		return nil, cli.Misuse(fmt.Errorf("%q is no number of an entry", args[0]))
	}
	return auditing.Prove(ctx, src, key, n)
}

func newAuditKey() *cobra.Command {
	var l auditLog
	cmd := &cobra.Command{
		Use: "key", Short: "print the log's verifier key, for those who check it",
		Long: "Print the verifier key of a tenant's audit log. It never changes. Give it to those who check the log by another way\n" +
			"than the log itself.",
		Example: "  facet audit key > audit.key", Args: cli.Args(cobra.NoArgs),
	}
	l.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		src, err := l.open(ctx)
		if err != nil {
			return err
		}
		key, err := auditing.ReadKey(ctx, src)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the log has no key: %w", err)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
		return err
	}
	return cmd
}
