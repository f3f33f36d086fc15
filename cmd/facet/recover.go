package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"facet/node/backup"
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
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(dirs) == 0 {
				return &usageError{errors.New("--dir is needed")}
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
	return cmd
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
