package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/internal/id"
	"facet/node/wire"
)

// placesPause is how often a command that waits for moves asks for the state.
const placesPause = time.Second

// newNode returns the commands about the nodes of a cluster.
func newNode() *cobra.Command {
	return cli.Group(
		&cobra.Command{
			Use: "node", Short: "nodes of a cluster: list, drain, activate, remove, replace",
			Long: "Nodes of a cluster, by name or id. A node that stops, restarts or dies keeps its replicas for a while;\n" +
				"only these commands move them away at once. A node joins by being started with --seeds.",
		},
		newNodeList(),
		newNodeOrder("drain NODE", "move a node's replicas to others; it stays in the cluster", wire.StateDraining),
		newNodeOrder("activate NODE", "give a drained node its share again", wire.StateActive),
		newNodeOrder("remove NODE", "take a node out for good; drain it first if it runs", wire.StateRemoved),
		newNodeOrder("replace NODE NEW-NODE", "drain a node onto another one", wire.StateDraining),
	)
}

func newNodeList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "nodes with their state and load", Args: cli.Args(cobra.NoArgs)}
	return onStatus(cmd, func(cmd *cobra.Command, _ *admin.Client, s wire.Status, _ []string) error {
		return admin.WriteNodes(cmd.OutOrStdout(), s)
	})
}

func newNodeOrder(use, short, state string) *cobra.Command {
	var force, wait bool
	cmd := &cobra.Command{Use: use, Short: short, Args: cli.Args(cobra.ExactArgs(strings.Count(use, " ")))}
	cmd.Flags().BoolVar(&force, "force", false, "even if shards then have fewer replicas, or the node still has some")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until all moves are done")
	return onStatus(cmd, func(cmd *cobra.Command, c *admin.Client, s wire.Status, args []string) (err error) {
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
	})
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
		return id.Node{}, cli.Misuse(fmt.Errorf("the cluster has no node %q", text))
	case 1:
		return found[0], nil
	default:
		return id.Node{}, cli.Misuse(fmt.Errorf("the cluster has %d nodes called %q: give the id", len(found), text))
	}
}

// newShard returns the commands about the shards of a cluster.
func newShard() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "shard", Short: "shards of a cluster: list, move, balance",
		Long: "Shards of a cluster. The cluster spreads replicas and leaders evenly by itself, zones first, a few moves at a time.",
	}, newShardList(), newShardMove(), newShardBalance())
}

func newShardList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "shards with their leaders, replicas and moves", Args: cli.Args(cobra.NoArgs)}
	return onStatus(cmd, func(cmd *cobra.Command, _ *admin.Client, s wire.Status, _ []string) error {
		if err := admin.WriteGroups(cmd.OutOrStdout(), s); err != nil {
			return err
		}
		return admin.WriteMoves(cmd.OutOrStdout(), s)
	})
}

func newShardMove() *cobra.Command {
	var order wire.ShardOrder
	var from, to string
	var wait bool
	cmd := &cobra.Command{Use: "move SHARD", Short: "move a replica of a shard to another node", Args: cli.Args(cobra.ExactArgs(1))}
	cmd.Flags().StringVar(&from, "from", "", "node that has the replica, by name or id; needed")
	cmd.Flags().StringVar(&to, "to", "", "node that gets it; needed")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the move is done")
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		number, err := strconv.ParseUint(args[0], 10, 16)
		if err != nil || number == 0 {
			return cli.Misuse(fmt.Errorf("%q is not the number of a shard", args[0]))
		}
		if from == "" || to == "" {
			return cli.Misuse(errors.New("--from and --to are needed"))
		}
		order.Shard = id.Shard(number)
		return nil
	}
	return onStatus(cmd, func(cmd *cobra.Command, c *admin.Client, s wire.Status, _ []string) (err error) {
		if order.From, err = nodeOf(s, from); err != nil {
			return err
		}
		if order.To, err = nodeOf(s, to); err != nil {
			return err
		}
		if err := c.OrderShard(cmd.Context(), order); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "shard %d moves from %s to %s\n", order.Shard, from, to)
		if !wait {
			return nil
		}
		return settle(cmd.Context(), c, cmd.OutOrStdout())
	})
}

func newShardBalance() *cobra.Command {
	var only bool
	cmd := &cobra.Command{
		Use: "balance", Short: "show the plan by which the cluster balances itself, and its moves until they are done",
		Long: "Show the plan by which the cluster balances itself, and its moves until they are done. It starts no move: the\n" +
			"cluster carries the plan out by itself, a few shards at a time.",
		Args: cli.Args(cobra.NoArgs),
	}
	cmd.Flags().BoolVar(&only, "plan", false, "show the plan and don't wait")
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		p, err := c.Plan(cmd.Context())
		if err != nil {
			return err
		}
		if err := admin.WritePlan(cmd.OutOrStdout(), p); err != nil || only {
			return err
		}
		return settle(cmd.Context(), c, cmd.OutOrStdout())
	})
}

// newClusterReplicas returns the command that changes the number of replicas.
func newClusterReplicas() *cobra.Command {
	var order wire.ReplicasOrder
	var wait bool
	cmd := &cobra.Command{
		Use: "replicas NUMBER", Short: "change the number of replicas of each shard: 1, 3 or 5",
		Long: "Change the number of replicas of each shard to 1, 3 or 5, while the cluster serves. Shards change a few at a\n" +
			"time; facet status shows how many have the new number. With fewer nodes than replicas each node gets one, and\n" +
			"nodes that join get the rest. Each node needs memory and disk for its share: see docs/capacity.md.\n\n" +
			"Three replicas survive the death of any node, five that of any two. One survives none: a shard stops with its\n" +
			"node, and is lost with its disk. That needs --force.",
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	cmd.Flags().BoolVar(&order.Force, "force", false, "allow one replica")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until all moves are done")
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		if order.Replicas, err = strconv.Atoi(args[0]); err != nil {
			return cli.Misuse(fmt.Errorf("%q is not a number of replicas", args[0]))
		}
		return nil
	}
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		a, err := c.OrderReplicas(cmd.Context(), order)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "each shard should have %d replicas from now on; it was %d\n", a.Replicas, a.Was)
		if a.Nodes < a.Replicas {
			fmt.Fprintf(out, "there are %d active nodes: each shard gets %d replicas, and the others when nodes join\n", a.Nodes, a.Nodes)
		}
		if !wait {
			return nil
		}
		return settle(cmd.Context(), c, out)
	})
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
