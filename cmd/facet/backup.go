package main

import (
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
	"facet/cmd/facet/cli"
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
	var o wire.BackupOrder
	cmd := &cobra.Command{
		Use: "backup --to URL", Short: "copy a cluster, or galleries of it, to an object store; verify and list such copies",
		Long: "Copy a cluster, or galleries of it, to an object store, sealed and with checksums, while it serves. The\n" +
			"nodes write to URL themselves: file:///DIR is a folder that all of them share, s3://, gs:// and azblob://\n" +
			"take their credentials from the nodes' environment. The same command with the same --name continues a\n" +
			"backup that was interrupted. Keep the cluster's key: without it a backup is of no use.",
		Args: cli.Args(cobra.NoArgs), PreRunE: needFlags("to"),
	}
	cmd.Flags().StringVar(&o.To, "to", "", "URL of the folder for backups")
	cmd.Flags().StringVar(&o.Name, "name", "", "name of the backup (default: the time)")
	cmd.Flags().StringArrayVar(&o.Galleries, "gallery", nil, "only this gallery, TENANT/GALLERY or an id; may be repeated")
	cmd.AddCommand(newBackupVerify(), newBackupList(), newBackupErasures())
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		id, err := c.Backup(cmd.Context(), o)
		return follow(cmd, c, id, err)
	})
}

// of contains the flags that name a backup.
type of struct {
	wire.BackupQuery
	keyFile string
}

func (b *of) flags(f *pflag.FlagSet) {
	f.StringVar(&b.Name, "name", "", "name of the backup (default: the newest)")
	f.StringVar(&b.keyFile, "cluster-key-of-backup", "", "file with the key of the cluster that made the backup, if that is another cluster")
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
	var b of
	b.flags(cmd.Flags())
	cmd.Args = cli.Args(cobra.ExactArgs(1))
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, args []string) error {
		if err := b.read(); err != nil {
			return err
		}
		b.From = args[0]
		return do(cmd, c, b.BackupQuery)
	})
}

func newBackupVerify() *cobra.Command {
	cmd := &cobra.Command{Use: "verify URL", Short: "read all of a backup and report damage"}
	return aboutBackup(cmd, func(cmd *cobra.Command, c *admin.Client, q wire.BackupQuery) error {
		id, err := c.VerifyBackup(cmd.Context(), q)
		return follow(cmd, c, id, err)
	})
}

func newBackupList() *cobra.Command {
	cmd := &cobra.Command{Use: "list URL", Short: "list the backups in a folder", Args: cli.Args(cobra.ExactArgs(1))}
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, args []string) error {
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
	})
}

func newBackupErasures() *cobra.Command {
	cmd := &cobra.Command{Use: "erasures URL", Short: "list the erased subjects in a backup, for restore --erasures"}
	return aboutBackup(cmd, func(cmd *cobra.Command, c *admin.Client, q wire.BackupQuery) error {
		list, err := c.Erasures(cmd.Context(), q)
		if err != nil {
			return err
		}
		return cli.PrintJSON(cmd.OutOrStdout(), list)
	})
}

// newRestore returns the command that restores a backup.
func newRestore() *cobra.Command {
	var b of
	var o wire.RestoreOrder
	var erasures string
	cmd := &cobra.Command{
		Use: "restore --from URL", Short: "restore a backup into an empty cluster, or one gallery into any cluster",
		Long: "Restore a backup into a newly founded cluster without tenants, with at least as many shards (the\n" +
			"ids of subjects name their shard) and any number of nodes; or one gallery into a cluster that does not have\n" +
			"it. Everything is verified before and compared afterwards. After a crash, give the same command again.\n" +
			"Subjects erased since then stay erased, if newer backups in the folder or --erasures list them.",
		Args: cli.Args(cobra.NoArgs), PreRunE: needFlags("from"),
	}
	b.flags(cmd.Flags())
	cmd.Flags().StringVar(&b.From, "from", "", "URL of the folder of backups")
	cmd.Flags().StringVar(&o.Gallery, "gallery", "", "only this gallery, by its name or id")
	cmd.Flags().StringVar(&erasures, "erasures", "", "file with subjects that stay erased (facet backup erasures writes one)")
	cmd.Flags().BoolVar(&o.WithErased, "with-erased", false, "also restore subjects that newer backups in the folder list as erased")
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		if erasures != "" {
			raw, err := readBounded(erasures)
			if err == nil {
				err = json.Unmarshal(raw, &o.Erasures)
			}
			if err != nil {
				return fmt.Errorf("the list of erasures: %w", err)
			}
		}
		if err := b.read(); err != nil {
			return err
		}
		o.BackupQuery = b.BackupQuery
		id, err := c.Restore(cmd.Context(), o)
		return follow(cmd, c, id, err)
	})
}

// follow waits for the operation that a node has started under id, and prints its
// outcome. err is the error of the start.
func follow(cmd *cobra.Command, c *admin.Client, id string, err error) error {
	if err != nil {
		return err
	}
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	last := -1
	for {
		p, err := c.BackupProgress(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case p.What == "" || p.ID != id: // another node answers, with its own last operation
			return errors.New("the node that did the work has stopped: give the same command again")
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
			return fmt.Errorf("%w; the cluster continues the work", ctx.Err())
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
		since := "no newer backup lists later erasures"
		if p.Restored.Since != "" {
			since = "compared with " + p.Restored.Since
		}
		if len(p.Restored.Sealed) > 0 {
			since += "; not compared with newer backups under other keys: " + strings.Join(p.Restored.Sealed, ", ")
		}
		_, err = fmt.Fprintf(w, "restore: %s: %d galleries, %d events, %d deleted entries, %d events of erased subjects left out (%s); %s\n",
			p.Restored.Backup, p.Restored.Galleries, p.Restored.Active, p.Restored.Deleted, p.Restored.Erased, since, took)
	}
	return err
}
