package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/cluster"
	"facet/cmd/facet/config"
	"facet/cmd/facet/serve"
	"facet/node/wire"
)

const (
	nodeDir = "./facet-node"
	// tokenVariable may contain the token. Other users of a machine can see a token
	// in the command line.
	tokenVariable = "FACET_JOIN_TOKEN"
	inviteFor     = time.Hour
)

func newCluster() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "cluster", Short: "a cluster of several machines: init, invite, join, status, replicas, admin, renew, rotate, passphrase",
		Long: "Found a cluster on one machine, have others join it over the network, and renew their\n" +
			"certificates and keys.\n\n" +
			"  first machine    facet cluster init --serve\n" +
			"                   facet cluster invite            (prints a token, and waits for machines)\n" +
			"  other machines   facet cluster join TOKEN --serve",
	}, newClusterInit(), newClusterInvite(), newClusterJoin(), newClusterStatus(), newClusterReplicas(), newClusterAdmin(), newClusterRenew(),
		newClusterRotate(), newClusterPassphrase())
}

// machine contains the flags that describe the node of this machine.
type machine struct {
	cluster.Machine
	serve bool
}

func (m *machine) flags(f *pflag.FlagSet) {
	m.Assets = config.AssetsDefault()
	f.StringVar(&m.Dir, "dir", nodeDir, "folder of the node: settings, keys, certificates and data")
	f.StringVar(&m.Name, "name", "", "name shown to operators (default: the host's)")
	f.StringVar(&m.Zone, "zone", "", "failure domain: copies of a shard lie in as many as possible")
	f.StringVar(&m.Address, "address", "", "how other machines and clients reach this one, a name or an IP address (default: detected)")
	f.StringSliceVar(&m.Hosts, "host", nil, "further host names that clients use; may be repeated")
	f.IntVar(&m.Port, "port", cluster.PortDefault, "port for clients; the next three are for nodes (TCP and UDP), operators and invitations")
	f.StringVar(&m.Assets.Models, "models", m.Assets.Models, "folder of a model pack, or of packs: a new cluster gets the pack sface, a node takes that of its cluster")
	libraryFlags(f, &m.Assets.ONNXRuntime, &m.Assets.SHA256)
	f.BoolVar(&m.serve, "serve", false, "then run facet serve")
}

// authorityAdvice says what to do with the folder of a new authority.
const authorityAdvice = `  authority  %s
             Copy it and %s to a safe place. Keep its passphrase elsewhere.
             Then move it off this machine: nodes don't need it. facet cluster invite, renew,
             rotate authority and passphrase do: there, name its place with --authority.
`

// conclude prints the next step, or takes it.
func (m *machine) conclude(ctx context.Context, w io.Writer, made cluster.Made) error {
	fmt.Fprintf(w, "node %s for %s\n  settings   %s\n  commands   export FACET_PROFILE=%s\n", made.Name, made.URL, made.Config, made.Profile)
	if made.Authority != "" {
		fmt.Fprintf(w, authorityAdvice, made.Authority, filepath.Join(filepath.Dir(made.Config), "keys"))
	}
	if !m.serve {
		_, err := fmt.Fprintf(w, "start it:  facet serve --config %s\n", made.Config)
		return err
	}
	s, err := config.LoadFile(made.Config, os.Environ())
	if err != nil {
		return err
	}
	return serve.Run(ctx, s, serve.Reload{}, os.Stderr)
}

func newClusterInit() *cobra.Command {
	var m machine
	var s cluster.Shape
	var a access
	cmd := &cobra.Command{
		Use: "init", Short: "make the first node of a cluster, with its authority and keys",
		Long: "Make the first node of a cluster in DIR: certificates with their authority, the keys that all nodes will\n" +
			"share, settings, and a profile for other commands. The cluster is founded when the node is started, and\n" +
			"grows with \"facet cluster invite\" and \"join\": each shard gets its replicas as nodes come.",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Authority = a.authority(cmd)
			made, err := cluster.Init(cmd.Context(), m.Machine, s)
			if err != nil {
				return err
			}
			return m.conclude(cmd.Context(), cmd.OutOrStdout(), made)
		},
	}
	m.flags(cmd.Flags())
	a.flagsBeside(cmd.Flags())
	cmd.Flags().StringVar(&s.Name, "cluster", cluster.ClusterName, "name of the cluster in its certificates")
	cmd.Flags().IntVar(&s.Shards, "shards", config.ShardsDefault, "number of shards; it can't be changed later")
	cmd.Flags().IntVar(&s.Replicas, "replicas", config.ReplicasDefault, "copies of each shard, as soon as there are as many nodes")
	return cmd
}

func newClusterInvite() *cobra.Command {
	var inv cluster.Invitation
	var a access
	cmd := &cobra.Command{
		Use: "invite", Short: "let machines join: print a token and wait for them",
		Long: "Let machines join the cluster of the node in DIR, with the cluster's authority. It prints a token and waits\n" +
			"on a port of its own until --nodes machines have joined with it, or the time is over. A machine with the token\n" +
			"gets the cluster's keys: treat it like a password. It is useless once this command has ended.",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inv.Nodes < 1 || inv.For <= 0 {
				return cli.Misuse(errors.New("--nodes must be 1 or more, and --for more than 0"))
			}
			out := cmd.OutOrStdout()
			inv.Authority = a.authority(cmd)
			inv.Joined = func(name string, left int) { fmt.Fprintf(out, "%s has joined, %d to go\n", name, left) }
			i, err := cluster.Invite(cmd.Context(), inv)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "on each machine, until %s:\n\n  facet cluster join %s\n\n", i.Token().Expires.Format(time.DateTime), i.Token())
			all, err := i.Wait(cmd.Context())
			if err == nil && !all && cmd.Context().Err() == nil {
				err = errors.New("the time is over, and not all machines have joined: invite the others again")
			}
			return err
		},
	}
	f := cmd.Flags()
	a.flagsBeside(f)
	f.StringVar(&inv.Dir, "dir", nodeDir, "folder of the first node")
	f.IntVar(&inv.Nodes, "nodes", 1, "how many machines may join")
	f.DurationVar(&inv.For, "for", inviteFor, "how long the token is valid")
	f.StringVar(&inv.Listen, "listen", "", "address to listen on (default: the third port after the node's)")
	return cmd
}

func newClusterJoin() *cobra.Command {
	var m machine
	cmd := &cobra.Command{
		Use: "join TOKEN", Short: "make this machine a node of a cluster",
		Long: "Make this machine a node of the cluster of a token (facet cluster invite). The keys of its\n" +
			"certificates are made here and stay here. With - for TOKEN the token comes from standard input, without\n" +
			"TOKEN from " + tokenVariable + ": other users of a machine can see command lines.",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := tokenOf(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			t, err := cluster.ParseToken(text)
			if err != nil {
				return cli.Misuse(err)
			}
			made, err := cluster.Join(cmd.Context(), m.Machine, t)
			if err != nil {
				return fmt.Errorf("join: %w", err)
			}
			return m.conclude(cmd.Context(), cmd.OutOrStdout(), made)
		},
	}
	m.flags(cmd.Flags())
	return cmd
}

func tokenOf(args []string, in io.Reader) (string, error) {
	if len(args) == 0 {
		if text := os.Getenv(tokenVariable); text != "" {
			return text, nil
		}
		return "", cli.Misuse(errors.New("a token is needed: \"facet cluster invite\" on the first machine prints one"))
	}
	if args[0] != "-" {
		return args[0], nil
	}
	b, err := io.ReadAll(io.LimitReader(in, backupFileMax))
	return strings.TrimSpace(string(b)), err
}

func newClusterStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "nodes with roles, certificates and keys, and warnings (facet status: groups and lag)",
		Args: cli.Args(cobra.NoArgs),
	}
	asJSON := cli.JSONFlag(cmd)
	return onStatus(cmd, func(cmd *cobra.Command, _ *admin.Client, s wire.Status, _ []string) error {
		if *asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), s)
		}
		return admin.WriteCluster(cmd.OutOrStdout(), s)
	})
}

func newClusterAdmin() *cobra.Command {
	var a access
	var dir string
	cmd := &cobra.Command{
		Use: "admin", Short: "let this machine give orders: make an administrator's certificate",
		Long: "Make an administrator's certificate beside the node in DIR, or renew it, and name it in the node's profile.\n" +
			"A machine that joined has none. The command needs the cluster's authority, or a copy of its folder, and\n" +
			"neither the first machine nor a running node.",
		Example: "  facet cluster admin --dir /var/lib/facet --authority /media/usb/facet-authority",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			profile, err := cluster.Administer(cmd.Context(), dir, a.authority(cmd))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "this machine has an administrator's certificate\n  commands   export FACET_PROFILE=%s\n", profile)
			return err
		},
	}
	a.flagsBeside(cmd.Flags())
	cmd.Flags().StringVar(&dir, "dir", nodeDir, "folder of the node")
	return cmd
}

func newClusterRenew() *cobra.Command {
	cmd := &cobra.Command{
		Use: "renew [NODE…]", Short: "give nodes new certificates, over the network and without a restart",
		Long: "Give new certificates to the nodes that are named, or to all whose certificates are in the last third of\n" +
			"their life. Each node makes its own keys; new connections use the new certificates at once, and those that\n" +
			"are open stay open.",
	}
	return withAuthority(cmd, func(k cluster.Keeper, args []string) error { return k.Renew(cmd.Context(), args) })
}

func newClusterRotate() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "rotate", Short: "replace the key of gossip, the cluster's key, or the authority"},
		newRotateRing(wire.RingGossip, "replace the key that encrypts gossip, without a pause",
			"Replace the key that encrypts gossip: all nodes get a new one, then use it, then forget the old one."),
		newRotateRing(wire.RingCluster, "replace the key that wraps the galleries' keys, without a pause",
			"Replace the key that wraps the galleries' keys and those of applications and tenants. All nodes get a new\n"+
				"key and use it. Everything that the old key has wrapped is wrapped again, and the disks forget the old key\n"+
				"and its wrappings. The galleries' own keys stay: an earlier copy of a disk together with the old key still\n"+
				"contains them. Earlier backups need the old key: keep it as long as them. Copy the new key."),
		newRotateAuthority(),
	)
}

func newRotateRing(ring, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use: ring, Short: short, Args: cli.Args(cobra.NoArgs),
		Long: long + "\nThe key files of the nodes are rewritten. All nodes must answer; after an interruption give the command again.",
	}
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		a, err := c.Rotate(cmd.Context(), ring)
		if err != nil {
			return fmt.Errorf("rotate the %s key: %w", ring, err)
		}
		out := cmd.OutOrStdout()
		if a.Resumed {
			fmt.Fprintln(out, "an earlier rotation was completed")
		}
		if ring == wire.RingCluster {
			fmt.Fprintf(out, "%d secrets were wrapped again; keep a copy of the new key\n", a.Rewrapped)
		}
		_, err = fmt.Fprintf(out, "%s key %s is in use on %d nodes, and no other\n", ring, a.Key.ID, a.Nodes)
		return err
	})
}

func newRotateAuthority() *cobra.Command {
	cmd := &cobra.Command{
		Use: "authority", Short: "replace the authority that issues certificates, in three steps",
		Long: "Replace the authority that issues certificates. Each call takes one of three steps: all nodes trust the old\n" +
			"and the new one; all get certificates of the new one; all forget the old one. Clients that check nodes with\n" +
			"ca.pem need the new file after the first step and before the second.",
		Args: cli.Args(cobra.NoArgs),
	}
	return withAuthority(cmd, func(k cluster.Keeper, _ []string) error { return k.Replace(cmd.Context()) })
}
