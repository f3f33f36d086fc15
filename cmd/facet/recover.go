package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/internal/id"
	"facet/node/backup"
	"facet/node/wire"
)

// newRecover returns the command for a cluster whose quorum is lost for good.
func newRecover() *cobra.Command {
	var dirs []string
	var yes bool
	cmd := &cobra.Command{
		Use: "recover --dir DIR", Short: "recover a cluster whose majority of nodes is lost for good",
		Long: "Recover a cluster with too few nodes left to elect a leader, when the other nodes will never return.\n" +
			"It works on the remaining data directories, with no node running on them. In each group the most advanced\n" +
			"replica becomes the only one. Without --yes it prints what it would do, and what may be lost.\n" +
			"Then start the nodes, and new nodes in place of the lost ones. Nodes that were declared lost must\n" +
			"never be started again.",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(dirs) == 0 {
				return cli.Misuse(errors.New("--dir is needed"))
			}
			r, err := backup.OpenRecovery(dirs)
			if err != nil {
				return err
			}
			err = recoverGroups(cmd.OutOrStdout(), r, yes)
			return errors.Join(err, r.Close())
		},
	}
	cmd.Flags().StringSliceVar(&dirs, "dir", nil, "remaining data directories; may be repeated")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	cmd.AddCommand(newRecoverWrites())
	return cmd
}

// newRecoverWrites returns the command for writes that members of a shard have lost.
func newRecoverWrites() *cobra.Command {
	var from uint64
	var putBack []string
	cmd := &cobra.Command{
		Use: "writes FOLDER", Short: "show the writes that a shard has lost, and put them back",
		Long: "Show the writes in a folder group-N.rewritten-TIME of a data directory. A node keeps such a folder when the\n" +
			"other members of a shard have replaced entries that were committed. --put-back all, or the numbers of\n" +
			"entries, sends these writes to the running cluster, in order. Ids and faces stay, the time is the present.\n" +
			"A write that is there already changes nothing, an update of a face that has changed since is refused.\n" +
			"Remove the folder when you are done: then the alarm ends.",
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	asJSON := cli.JSONFlag(cmd)
	cmd.Flags().Uint64Var(&from, "from", 0, "first entry to show (default: the first that was seen to differ)")
	cmd.Flags().StringSliceVar(&putBack, "put-back", nil, "entries to put back, or all")
	onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, args []string) error {
		w, err := backup.ReadLostWrites(args[0], from)
		if err != nil {
			return err
		}
		return putWritesBack(cmd, c, w, putBack)
	})
	send := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(putBack) > 0 {
			return send(cmd, args)
		}
		w, err := backup.ReadLostWrites(args[0], from)
		if err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(w)
		}
		return writeLostWrites(cmd.OutOrStdout(), w)
	}
	return cmd
}

func writeLostWrites(out io.Writer, w backup.LostWrites) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ENTRY\tWRITE\tGALLERY\tSUBJECT\tEVENT\tTIME\t")
	for _, l := range w.Writes {
		event, doubt := l.Event.String(), ""
		if l.Event == (id.Event{}) {
			event = "all"
		}
		if l.Index > w.Commit {
			doubt = "perhaps never acknowledged"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Index, l.What, l.Gallery, l.Subject, event, l.Time.Format(time.RFC3339), doubt)
	}
	err := t.Flush()
	fmt.Fprintf(out, "shard %d: %d writes; %d other commands (slots, jobs) are not put back\n", w.Shard, len(w.Writes), w.Others)
	return err
}

// putWritesBack sends the writes with these numbers, or all, to the cluster.
func putWritesBack(cmd *cobra.Command, c *admin.Client, w backup.LostWrites, numbers []string) error {
	left := map[string]bool{}
	for _, n := range numbers {
		left[n] = true
	}
	all, failed := left["all"], 0
	delete(left, "all")
	for _, l := range w.Writes {
		number := strconv.FormatUint(l.Index, 10)
		if !all && !left[number] {
			continue
		}
		delete(left, number)
		outcome, err := c.PutBack(cmd.Context(), wire.WriteOrder{Shard: w.Shard, Command: l.Command})
		if err != nil {
			outcome, failed = err.Error(), failed+1
		}
		fmt.Fprintf(cmd.OutOrStdout(), "entry %d, %s %s: %s\n", l.Index, l.What, l.Subject, outcome)
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d writes were not put back; the command may be repeated", failed)
	case len(left) > 0:
		return cli.Misuse(fmt.Errorf("there are no writes with the numbers %s", strings.Join(slices.Sorted(maps.Keys(left)), ", ")))
	}
	return nil
}

func recoverGroups(w io.Writer, r *backup.Recovery, yes bool) error {
	fmt.Fprintf(w, "cluster %s\n", r.Cluster)
	for _, g := range r.Groups {
		fmt.Fprintf(w, "group %d: the replica in %s becomes the only one of %d; its last entry is %d\n", g.Group, g.Dir, g.Voters, g.Last)
		if g.Voters > 1 {
			fmt.Fprintf(w, "  acknowledged entries after %d are lost; entries %d to %d count from now on, though some may never have been acknowledged\n",
				g.Last, g.Snapshot+1, g.Last)
		}
		for _, dir := range g.Erased {
			fmt.Fprintf(w, "  the replica in %s is erased and rebuilt\n", dir)
		}
	}
	for _, s := range r.Lost {
		fmt.Fprintf(w, "SHARD %d IS LOST: no directory has a replica. Galleries on it can't be searched: restore a backup\n", s)
	}
	fmt.Fprintf(w, "nodes removed for good: %s\n", strings.Join(r.Gone, ", "))
	if !yes {
		return errors.New("nothing was changed: add --yes to do it")
	}
	if err := r.Carry(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "done: start the remaining nodes, then new ones")
	return err
}
