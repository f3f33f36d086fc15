package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/internal/id"
	"facet/node/wire"
)

// placesPause is how often a command that waits for moves asks for the state.
const placesPause = time.Second

// newNode returns the commands about the nodes of a cluster.
func newNode() *cobra.Command {
	cmd := &cobra.Command{
		Use: "node", Short: "nodes of a cluster: list, drain, activate, remove, replace",
		Long: "Nodes of a cluster, by name or id. A node that stops, restarts or dies keeps its replicas for a while;\n" +
			"only these commands move them away at once. A node joins by being started with --seeds.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newNodeList(),
		newNodeOrder("drain NODE", "move a node's replicas to others; it stays in the cluster", wire.StateDraining),
		newNodeOrder("activate NODE", "give a drained node its share again", wire.StateActive),
		newNodeOrder("remove NODE", "take a node out for good; drain it first if it runs", wire.StateRemoved),
		newNodeOrder("replace NODE HEIR", "drain a node onto another one", wire.StateDraining),
	)
	return cmd
}

func newNodeList() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: "list", Short: "nodes with their state and what they hold", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, s, err := t.status(cmd.Context())
			if err != nil {
				return err
			}
			return admin.WriteNodes(cmd.OutOrStdout(), s)
		},
	}
	t.flags(cmd.Flags())
	return cmd
}

func newNodeOrder(use, short, state string) *cobra.Command {
	var t target
	var force, wait bool
	args := 1
	if use == "replace NODE HEIR" {
		args = 2
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: usage(cobra.ExactArgs(args)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, s, err := t.status(cmd.Context())
			if err != nil {
				return err
			}
			order := wire.Order{State: state, Force: force}
			for i, to := range []*id.Node{&order.Node, &order.Heir}[:len(args)] {
				if *to, err = nodeOf(s, args[i]); err != nil {
					return err
				}
			}
			if err := c.OrderNode(cmd.Context(), order); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "node %s is %s\n", args[0], state)
			if !wait {
				return nil
			}
			return settle(cmd.Context(), c, cmd.OutOrStdout())
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force", false, "even if shards have fewer replicas then, or the node still holds some")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until all moves are done")
	return cmd
}

// nodeOf returns the node with this name or id.
func nodeOf(s wire.Status, text string) (id.Node, error) {
	var found []id.Node
	for _, n := range s.Nodes {
		if n.Name == text || n.ID.String() == text {
			found = append(found, n.ID)
		}
	}
	switch len(found) {
	case 0:
		return id.Node{}, &usageError{fmt.Errorf("the cluster has no node %q", text)}
	case 1:
		return found[0], nil
	default:
		return id.Node{}, &usageError{fmt.Errorf("the cluster has %d nodes called %q: give the id", len(found), text)}
	}
}

// newShard returns the commands about the shards of a cluster.
func newShard() *cobra.Command {
	cmd := &cobra.Command{
		Use: "shard", Short: "shards of a cluster: list, move, balance",
		Long: "Shards of a cluster. The cluster spreads replicas and leaders evenly by itself, zones first, a few moves at a time.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newShardList(), newShardMove(), newShardBalance())
	return cmd
}

func newShardList() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: "list", Short: "shards with their leaders, replicas and moves", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, s, err := t.status(cmd.Context())
			if err != nil {
				return err
			}
			if err := admin.WriteGroups(cmd.OutOrStdout(), s); err != nil {
				return err
			}
			return admin.WriteMoves(cmd.OutOrStdout(), s)
		},
	}
	t.flags(cmd.Flags())
	return cmd
}

func newShardMove() *cobra.Command {
	var t target
	var from, to string
	var wait bool
	cmd := &cobra.Command{
		Use: "move SHARD", Short: "give one node's replica of a shard to another node", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.ParseUint(args[0], 10, 16)
			if err != nil || number == 0 {
				return &usageError{fmt.Errorf("%q is not the number of a shard", args[0])}
			}
			if from == "" || to == "" {
				return &usageError{errors.New("--from and --to are needed")}
			}
			c, s, err := t.status(cmd.Context())
			if err != nil {
				return err
			}
			order := wire.ShardOrder{Shard: id.Shard(number)}
			if order.From, err = nodeOf(s, from); err != nil {
				return err
			}
			if order.To, err = nodeOf(s, to); err != nil {
				return err
			}
			if err := c.OrderShard(cmd.Context(), order); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "shard %d moves from %s to %s\n", number, from, to)
			if !wait {
				return nil
			}
			return settle(cmd.Context(), c, cmd.OutOrStdout())
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&from, "from", "", "node that has the replica, by name or id; needed")
	cmd.Flags().StringVar(&to, "to", "", "node that is to have it; needed")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the move is done")
	return cmd
}

func newShardBalance() *cobra.Command {
	var t target
	var only bool
	cmd := &cobra.Command{
		Use: "balance", Short: "show the plan by which the cluster balances itself, and its moves until they are done",
		Long: "Show the plan by which the cluster balances itself, and its moves until they are done. It starts nothing: the\n" +
			"cluster carries the plan out by itself, a few shards at a time.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := t.client()
			if err != nil {
				return err
			}
			p, err := c.Plan(cmd.Context())
			if err != nil {
				return err
			}
			if err := admin.WritePlan(cmd.OutOrStdout(), p); err != nil || only {
				return err
			}
			return settle(cmd.Context(), c, cmd.OutOrStdout())
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&only, "plan", false, "show the plan and don't wait")
	return cmd
}

// settle prints the moves until there have been none for a few checks.
func settle(ctx context.Context, c *admin.Client, w io.Writer) error {
	const rest = 3
	last := ""
	for still := 0; still < rest; {
		s, err := c.Status(ctx)
		if err != nil {
			return err
		}
		if len(s.Moves) == 0 {
			still++
		} else {
			still = 0
		}
		if now := fmt.Sprint(s.Moves); now != last && len(s.Moves) > 0 {
			last = now
			if err := admin.WriteMoves(w, s); err != nil {
				return err
			}
		}
		select {
		case <-time.After(placesPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, err := fmt.Fprintln(w, "nothing is on the move")
	return err
}
