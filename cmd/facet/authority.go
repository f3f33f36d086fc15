package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/authority"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/cluster"
	"facet/cmd/facet/process"
)

// newPassphraseFlag names a file with another passphrase for the authority's key.
const newPassphraseFlag = "new-passphrase-file"

// access contains the flags of a command that opens the authority.
type access struct {
	dir, flag string // of the authority
	file      string // with the passphrase
}

// flags adds the flag of the passphrase, and the one of the folder under this name.
func (a *access) flags(f *pflag.FlagSet, folder, byDefault, help string) {
	a.flag = folder
	f.StringVar(&a.dir, folder, byDefault, help)
	f.StringVar(&a.file, authority.PassphraseFlag, "", "file whose first line is the passphrase of the authority's key "+
		"(default: "+authority.PassphraseVariable+", else asked on the terminal)")
}

// flagsBeside adds the flags of a command that knows the folder of a node.
func (a *access) flagsBeside(f *pflag.FlagSet) {
	a.flags(f, "authority", "", "folder of the authority (default: the node's folder with \"-authority\" behind its name)")
}

// authority returns the access to the authority that the flags name. From here on only
// root can trace the process, which will have the authority's key in its memory.
func (a *access) authority(cmd *cobra.Command) authority.Access {
	process.BarDumps()
	p := passphrase(a.file, authority.PassphraseFlag)
	p.Text = os.Getenv(authority.PassphraseVariable)
	return authority.Access{Dir: a.dir, Flag: a.flag, Passphrase: p, Notices: cmd.ErrOrStderr()}
}

// passphrase returns a passphrase of a file, or of the terminal if there is one.
func passphrase(file, flag string) authority.Passphrase {
	p := authority.Passphrase{File: file, Flag: flag}
	if process.IsTerminal(os.Stdin) && process.IsTerminal(os.Stderr) {
		p.Ask = process.AskSecret
	}
	return p
}

// withAuthority completes a command that calls a cluster and needs its authority.
func withAuthority(cmd *cobra.Command, run func(k cluster.Keeper, args []string) error) *cobra.Command {
	var t target
	var a access
	t.flags(cmd.Flags())
	a.flagsBeside(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		where, err := t.find()
		if err != nil {
			return err
		}
		a.dir = cmp.Or(a.dir, authority.Beside(filepath.Dir(where.Certificates)))
		with := a.authority(cmd)
		if _, err := os.Stat(filepath.Join(where.Certificates, "admin.pem")); err == nil {
			with.Admin = where.Certificates
		}
		f, err := with.Open(cmd.Context())
		if err != nil {
			return fmt.Errorf("open the authority: %w", err)
		}
		c, err := admin.NewClient(where)
		if err != nil {
			return err
		}
		return run(cluster.Keeper{Authority: f, Client: c, Out: cmd.OutOrStdout()}, args)
	}
	return cmd
}

func newClusterPassphrase() *cobra.Command {
	var a access
	var dir, next string
	cmd := &cobra.Command{
		Use: "passphrase", Short: "encrypt the authority's key, or change its passphrase",
		Long: "Encrypt the authority's key, or change its passphrase. The old file is overwritten where the file system\n" +
			"allows it; copies of the folder keep the old passphrase.",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.dir = cmp.Or(a.dir, authority.Beside(dir))
			f, err := a.authority(cmd).ChangePassphrase(cmd.Context(), passphrase(next, newPassphraseFlag))
			if err != nil {
				return err
			}
			text := fmt.Sprintf("the key of the authority in %s has the new passphrase; make a new copy of the folder, and remove old copies\n", f.Dir())
			if _, err := os.Stat(f.Admin()); err == nil {
				text += fmt.Sprintf("before you remove the folder itself, move %s elsewhere and change \"certificates\" in profile.yaml: commands need it\n", f.Admin())
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	a.flagsBeside(cmd.Flags())
	cmd.Flags().StringVar(&next, newPassphraseFlag, "", "file whose first line is the new passphrase (default: asked on the terminal)")
	cmd.Flags().StringVar(&dir, "dir", nodeDir, "folder of the first node")
	return cmd
}
