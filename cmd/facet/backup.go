package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"facet/cmd/facet/admin"
	"facet/node/wire"
)

const (
	// backupPause is how often a command that waits for a backup asks for its
	// state.
	backupPause = 300 * time.Millisecond
	// backupFileMax is the most bytes of a file with a key or with erasures.
	backupFileMax = 64 << 20
)

// newBackup returns the commands about backups.
func newBackup() *cobra.Command {
	var t target
	var o wire.BackupOrder
	cmd := &cobra.Command{
		Use: "backup --to URL", Short: "copy a cluster, or galleries of it, to an object store; verify and list such copies",
		Long: "Copy a cluster, or galleries of it, to an object store, sealed and with checksums, while it serves. The\n" +
			"nodes write to URL themselves: file:///DIR is a folder that all of them share, s3://, gs:// and azblob://\n" +
			"take their credentials from the nodes' environment. The same command with the same --name goes on with a\n" +
			"backup that was interrupted. Keep the cluster's key: without it a backup is of no use.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.To == "" {
				return &usageError{errors.New("--to is needed")}
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			begun, err := c.Backup(cmd.Context(), o)
			if err != nil {
				return err
			}
			return follow(cmd.Context(), c, begun, cmd.OutOrStdout())
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&o.To, "to", "", "URL of the folder for backups")
	cmd.Flags().StringVar(&o.Name, "name", "", "name of the backup (default: the time)")
	cmd.Flags().StringArrayVar(&o.Galleries, "gallery", nil, "only this gallery, TENANT/GALLERY or an id; may be repeated")
	cmd.AddCommand(newBackupVerify(), newBackupList(), newBackupErasures())
	return cmd
}

// of contains the flags that name a backup.
type of struct {
	wire.BackupQuery
	keyFile string
}

func (b *of) flags(f *pflag.FlagSet) {
	f.StringVar(&b.Name, "name", "", "name of the backup (default: the newest)")
	f.StringVar(&b.keyFile, "cluster-key-of-backup", "", "file with the key of the cluster that made the backup, if it is another one's")
}

// read reads the key.
func (b *of) read() error {
	if b.keyFile == "" {
		return nil
	}
	raw, err := readBounded(b.keyFile)
	if err != nil {
		return err
	}
	// A cluster's key file has one line for each key. The line of the key in use is
	// the first, and the time of its creation follows the key.
	fields := strings.Fields(string(raw))
	if len(fields) > 0 {
		b.Key, err = hex.DecodeString(fields[0])
	}
	if err != nil || len(b.Key) == 0 {
		return errors.New("the file of --cluster-key-of-backup must begin with hexadecimal digits, as a cluster's key file does")
	}
	return nil
}

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, backupFileMax))
}

// aboutBackup completes a command whose argument is the URL of a folder with
// backups and whose flags name one of them.
func aboutBackup(cmd *cobra.Command, do func(cmd *cobra.Command, c *admin.Client, q wire.BackupQuery) error) *cobra.Command {
	var t target
	var b of
	cmd.Args = usage(cobra.ExactArgs(1))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := t.client()
		if err == nil {
			err = b.read()
		}
		if err != nil {
			return err
		}
		b.From = args[0]
		return do(cmd, c, b.BackupQuery)
	}
	t.flags(cmd.Flags())
	b.flags(cmd.Flags())
	return cmd
}

func newBackupVerify() *cobra.Command {
	cmd := &cobra.Command{Use: "verify URL", Short: "read all of a backup and say what is damaged"}
	return aboutBackup(cmd, func(cmd *cobra.Command, c *admin.Client, q wire.BackupQuery) error {
		begun, err := c.VerifyBackup(cmd.Context(), q)
		if err != nil {
			return err
		}
		return follow(cmd.Context(), c, begun, cmd.OutOrStdout())
	})
}

func newBackupList() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: "list URL", Short: "backups in a folder", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := t.client()
			if err != nil {
				return err
			}
			list, err := c.Backups(cmd.Context(), wire.BackupQuery{From: args[0]})
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tMADE\tBYTES\tVERSION")
			for _, l := range list {
				if l.Finished {
					fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", l.Name, l.Created.Format(time.RFC3339), l.Bytes, l.Version)
				} else {
					fmt.Fprintf(w, "%s\tunfinished\n", l.Name)
				}
			}
			return w.Flush()
		},
	}
	t.flags(cmd.Flags())
	return cmd
}

func newBackupErasures() *cobra.Command {
	cmd := &cobra.Command{Use: "erasures URL", Short: "the subjects that a backup knows to be erased, for restore --erasures"}
	return aboutBackup(cmd, func(cmd *cobra.Command, c *admin.Client, q wire.BackupQuery) error {
		list, err := c.Erasures(cmd.Context(), q)
		if err != nil {
			return err
		}
		return printJSON(cmd.OutOrStdout(), list)
	})
}

// newRestore returns the command that restores a backup.
func newRestore() *cobra.Command {
	var t target
	var b of
	var o wire.RestoreOrder
	var erasures string
	cmd := &cobra.Command{
		Use: "restore --from URL", Short: "put a backup into an empty cluster, or one gallery into any",
		Long: "Put a backup into a cluster that was founded anew and has no tenants, with at least as many shards (the\n" +
			"ids of subjects name their shard) and any number of nodes; or one gallery into a cluster that does not have\n" +
			"it. Everything is verified before and compared afterwards. The same command again goes on after a crash.\n" +
			"Who was erased since does not come back, as far as newer backups in the folder, or --erasures, tell.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.From == "" {
				return &usageError{errors.New("--from is needed")}
			}
			if erasures != "" {
				raw, err := readBounded(erasures)
				if err != nil {
					return err
				}
				if err := json.Unmarshal(raw, &o.Erasures); err != nil {
					return fmt.Errorf("the list of erasures: %w", err)
				}
			}
			c, err := t.client()
			if err == nil {
				err = b.read()
			}
			if err != nil {
				return err
			}
			o.BackupQuery = b.BackupQuery
			begun, err := c.Restore(cmd.Context(), o)
			if err != nil {
				return err
			}
			return follow(cmd.Context(), c, begun, cmd.OutOrStdout())
		},
	}
	t.flags(cmd.Flags())
	b.flags(cmd.Flags())
	cmd.Flags().StringVar(&b.From, "from", "", "URL of the folder of backups")
	cmd.Flags().StringVar(&o.Gallery, "gallery", "", "only this gallery, by its name or id")
	cmd.Flags().StringVar(&erasures, "erasures", "", "file with subjects that are not to come back (facet backup erasures makes one)")
	cmd.Flags().BoolVar(&o.WithErased, "with-erased", false, "bring back who was erased since, by newer backups in the folder")
	return cmd
}

// follow waits for the started operation and prints its outcome.
func follow(ctx context.Context, c *admin.Client, begun string, w io.Writer) error {
	last := -1
	for {
		p, err := c.BackupProgress(ctx, begun)
		if err != nil {
			return err
		}
		switch {
		case p.What == "" || p.ID != begun: // another node answers with an operation of its own
			return errors.New("the node that was at it has gone: give the same command again")
		case p.Running && p.Done != last && p.Total > 0:
			last = p.Done
			fmt.Fprintf(w, "%s: %d of %d parts\n", p.What, p.Done, p.Total)
		case p.Error != "":
			return errors.New(p.Error)
		case !p.Running:
			return conclude(w, p)
		}
		select {
		case <-time.After(backupPause):
		case <-ctx.Done():
			return fmt.Errorf("%w; the cluster goes on with it", ctx.Err())
		}
	}
}

func conclude(w io.Writer, p wire.BackupProgress) error {
	took := p.Ended.Sub(p.Began).Round(time.Millisecond)
	var err error
	switch {
	case p.Backup != nil:
		_, err = fmt.Fprintf(w, "%s: %s is whole: %d events, %d bytes, manifest %x; %s\n",
			p.What, p.Backup.Name, p.Backup.Events, p.Backup.Bytes, p.Backup.Digest[:8], took)
	case p.Restored != nil:
		since := "no newer backup tells who was erased since"
		if p.Restored.Since != "" {
			since = "compared with " + p.Restored.Since
		}
		if len(p.Restored.Sealed) > 0 {
			since += "; newer, and not compared with, since other keys have sealed them: " + strings.Join(p.Restored.Sealed, ", ")
		}
		_, err = fmt.Fprintf(w, "restore: %s: %d galleries, %d events, %d deleted entries, %d events of erased subjects left out (%s); %s\n",
			p.Restored.Backup, p.Restored.Galleries, p.Restored.Active, p.Restored.Deleted, p.Restored.Erased, since, took)
	}
	return err
}
