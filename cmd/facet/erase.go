package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"facet.internal/client"
	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/erasing"
	"facet/cmd/facet/process"
	"facet/cmd/facet/tenant"
	"facet/node/receipt"
)

// photoBytesMax is the most bytes of the photo of a person to erase.
const photoBytesMax = 20 << 20

// errIncomplete makes the exit code report that a receipt lacks something.
var errIncomplete = errors.New("the receipt is not complete")

// keeping contains the flags of commands that keep a receipt.
type keeping struct {
	erasing.Keeper
	wait string
	op   target
}

func (k *keeping) flags(f *pflag.FlagSet) {
	f.StringVar(&k.wait, "wait", "", "wait until no disk of a node (disks), or no disk and no backup (all) has anything of the person")
	f.Lookup("wait").NoOptDefVal = string(erasing.WaitAll)
	f.BoolVar(&k.Order.Now, "now", false, "order the rounds of erasure that are due within 12 hours: disks are clean within an hour")
	f.StringArrayVar(&k.Order.Folders, "backups", nil, "URL of a folder with backups, beside that of the scheduled ones; may be repeated")
}

// open connects to the operators' port.
func (k *keeping) open(cmd *cobra.Command) error {
	if k.Wait = erasing.Wait(k.wait); k.Wait != erasing.WaitNot && k.Wait != erasing.WaitDisks && k.Wait != erasing.WaitAll {
		return cli.Misuse(errors.New("--wait is disks or all"))
	}
	where, err := k.op.find()
	if err != nil {
		return err
	}
	k.Out = cmd.ErrOrStderr()
	k.Admin, err = admin.NewClient(where)
	return err
}

// finish prints a receipt.
func (k *keeping) finish(cmd *cobra.Command, r *receipt.Receipt, err error) error {
	if r == nil {
		return err
	}
	if failed := erasing.WriteReceipt(cmd.OutOrStdout(), r); failed != nil {
		return errors.Join(err, failed)
	}
	if _, failed := fmt.Fprintf(cmd.OutOrStdout(), "receipt: %s\n", k.File); failed != nil {
		return errors.Join(err, failed)
	}
	if !r.Complete {
		fmt.Fprintf(cmd.ErrOrStderr(), "later: facet erase continue %s\n", k.File)
	}
	return err
}

// newErase returns the commands about erasing a person.
func newErase() *cobra.Command {
	var k keeping
	var profile, purpose, photo, external string
	var threshold int
	var yes, gone bool
	cmd := &cobra.Command{
		Use:   "erase {--photo FILE | --external-id ID | SUBJECT-ID…}",
		Short: "erase a person from all galleries of a tenant, with a signed receipt",
		Long: "Find a person in all galleries of a tenant, list the subjects, ask, erase them, and write a receipt that the\n" +
			"cluster has signed. It names each subject, and node by node whether its disk still has anything of them, and\n" +
			"the backups that do.\n\n" +
			"The tenant's access key (role admin, --tenant) finds and erases. The receipt comes from the nodes, by an\n" +
			"operator's connection (--profile, or --admin and --certificates). --dir names both of a cluster of facet dev.",
		Example: "  facet erase --photo person.jpg --now --wait=disks\n  facet erase --gone 5b0b9b32-8392-8002-b506-6b5b46edb7fa   # it has expired\n  facet erase --external-id 4711\n  facet erase verify person.receipt --key \"$(cat cluster.pub)\"",
		Args:    cli.Args(cobra.ArbitraryArgs),
	}
	f := cmd.Flags()
	f.StringVar(&profile, "tenant", "", "profile of the tenant (facet tenant create --save), with an access key of role admin (default: that of --dir)")
	f.StringVar(&purpose, "purpose", "", tenant.PurposeHelp)
	f.StringVar(&photo, "photo", "", "photo of the person: all subjects at or above the threshold")
	f.StringVar(&external, "external-id", "", "the tenant's own id of the person")
	f.IntVar(&threshold, "threshold", client.ThresholdDefault, "lowest score with the photo")
	f.BoolVar(&gone, "gone", false, "SUBJECT-IDs that no gallery has, such as expired ones, get on the receipt, too, once for each gallery")
	f.BoolVar(&yes, "yes", false, "do not ask")
	f.StringVar(&k.File, "receipt", "", "file of the receipt (default: erasure-TIME.receipt)")
	k.flags(f)
	k.op.flags(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		person, err := personOf(photo, external, threshold, args)
		if person.Gone = gone; err == nil && gone && len(args) == 0 {
			err = cli.Misuse(errors.New("--gone needs the ids of the subjects: a photo and an external id find only subjects that are there"))
		}
		if err == nil {
			err = k.open(cmd)
		}
		if err != nil {
			return err
		}
		if profile == "" {
			profile = filepath.Join(k.op.dir, "dev.json")
		}
		cfg, err := client.ReadProfile(profile)
		if err != nil {
			return err
		}
		cfg.Purpose, cfg.Dial = purpose, admin.Dial
		c, err := client.New(cfg)
		if err != nil {
			return err
		}
		defer c.Close()
		return k.erase(cmd, c, person, yes)
	}
	cmd.AddCommand(newEraseContinue(), newEraseVerify())
	return cmd
}

// personOf reads whom to erase.
func personOf(photo, external string, threshold int, subjects []string) (p erasing.Person, err error) {
	ways := 0
	for _, named := range []bool{photo != "", external != "", len(subjects) > 0} {
		if named {
			ways++
		}
	}
	if ways != 1 {
		return p, cli.Misuse(errors.New("name the person in one way: by --photo, by --external-id, or by subject ids"))
	}
	p.Subjects, p.ExternalID = subjects, external
	if photo == "" {
		return p, nil
	}
	info, err := os.Stat(photo)
	if err == nil && info.Size() > photoBytesMax {
		err = fmt.Errorf("%s is larger than %d MiB", photo, photoBytesMax>>20)
	}
	if err == nil {
		p.Photo, err = os.ReadFile(photo)
	}
	if err != nil {
		return p, fmt.Errorf("read the photo: %w", err)
	}
	p.Threshold = &threshold
	return p, nil
}

// erase lists, asks, erases, and keeps the receipt.
func (k *keeping) erase(cmd *cobra.Command, c *client.Client, p erasing.Person, yes bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	list, err := erasing.Find(ctx, c, p)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "no gallery of the tenant has the person; nothing was erased")
		return err
	}
	if len(list) > receipt.SubjectsMax {
		return fmt.Errorf("%d subjects were found, and a receipt has at most %d: raise --threshold, or erase them by their ids in parts", len(list), receipt.SubjectsMax)
	}
	if err := erasing.WriteFound(out, list); err != nil {
		return err
	}
	if !yes {
		if err := ask(ctx, fmt.Sprintf("Erase %d subjects? Nobody can bring them back. [y/N] ", len(list))); err != nil {
			return err
		}
	}
	if k.File == "" {
		k.File = "erasure-" + time.Now().UTC().Format("20060102T150405Z") + ".receipt"
	}
	done, failed := erasing.Erase(ctx, list)
	if len(done) == 0 {
		return failed
	}
	r, err := k.Begin(ctx, done)
	return errors.Join(failed, k.finish(cmd, r, err))
}

// ask asks on the terminal. Any answer but y is an error.
func ask(ctx context.Context, question string) error {
	if !process.IsTerminal(os.Stdin) {
		return cli.Misuse(errors.New("nobody can be asked here: give --yes"))
	}
	answer, err := process.Ask(ctx, question)
	if err != nil {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was erased")
	}
	return nil
}

func newEraseContinue() *cobra.Command {
	var k keeping
	cmd := &cobra.Command{
		Use:   "continue RECEIPT",
		Short: "bring a receipt up to date: ask all nodes again, and sign it again",
		Args:  cli.Args(cobra.ExactArgs(1)),
	}
	k.flags(cmd.Flags())
	k.op.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := k.open(cmd); err != nil {
			return err
		}
		k.File = args[0]
		r, err := k.Continue(cmd.Context())
		return k.finish(cmd, r, err)
	}
	return cmd
}

func newEraseVerify() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "verify RECEIPT --key KEY",
		Short: "check a receipt offline: its signature, and whether it is complete",
		Long: "Check the signature of a receipt with the cluster's public key, and print the receipt. It calls no cluster.\n" +
			"The exit code is 1 for a receipt that is not complete. facet cluster status | grep ^facet- prints the key.",
		Example: "  facet cluster status | grep ^facet- > cluster.pub\n  facet erase verify person.receipt --key \"$(cat cluster.pub)\"",
		Args:    cli.Args(cobra.ExactArgs(1)), PreRunE: needFlags("key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := erasing.Read(args[0])
			if err != nil {
				return err
			}
			r, err := receipt.Open(text, key)
			if err != nil {
				return err
			}
			if err := erasing.WriteReceipt(cmd.OutOrStdout(), r); err != nil {
				return err
			}
			if !r.Complete {
				return errIncomplete
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the cluster's public key")
	return cmd
}
