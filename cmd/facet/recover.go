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
		Use: "recover --dir DIR", Short: "bring a cluster back whose majority of nodes is gone for good",
		Long: "Bring a cluster back of which too few nodes are left to elect a leader, and the others will never return.\n" +
			"It works on the data directories that are left, with no node running on them, and makes the replica of each\n" +
			"group that has come furthest the only one. Without --yes it says what it would do, and what may be lost.\n" +
			"Then start the nodes, and new ones in the place of those that are gone. Nodes that were declared gone must\n" +
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
	cmd.Flags().StringSliceVar(&dirs, "dir", nil, "data directories that are left; may be repeated")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return cmd
}

func recoverGroups(w io.Writer, r *backup.Recovery, yes bool) error {
	fmt.Fprintf(w, "cluster %s\n", r.Cluster)
	for _, g := range r.Groups {
		fmt.Fprintf(w, "group %d: the replica in %s becomes the only one of %d; its last entry is %d\n", g.Group, g.Dir, g.Voters, g.Last)
		if g.Voters > 1 {
			fmt.Fprintf(w, "  what was acknowledged behind %d is lost; of the entries %d to %d some may never have been acknowledged, and count from now on\n",
				g.Last, g.Snapshot+1, g.Last)
		}
		for _, dir := range g.Erased {
			fmt.Fprintf(w, "  the replica in %s is erased and made anew\n", dir)
		}
	}
	for _, s := range r.Lost {
		fmt.Fprintf(w, "SHARD %d IS LOST: no directory has a replica. Galleries that lie on it can't be searched; restore a backup\n", s)
	}
	fmt.Fprintf(w, "nodes that are removed for good: %s\n", strings.Join(r.Gone, ", "))
	if !yes {
		return errors.New("nothing was changed: --yes does it")
	}
	if err := r.Carry(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "done: start the nodes that are left, then new ones")
	return err
}
