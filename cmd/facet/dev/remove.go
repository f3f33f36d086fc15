package dev

import (
	"errors"
	"os"

	"facet/cmd/facet/process"
)

// Remove removes the cluster in dir and nothing else, so that the next Open founds
// a new one. It stops nodes that still run. It does nothing when there is no
// cluster, and refuses while a `facet dev` runs on it.
func Remove(dir string) error {
	f := folder(dir)
	s, err := readState(f)
	if err != nil || s == nil {
		return err
	}
	held, err := lock(f, dir)
	if err != nil {
		return err
	}
	for _, n := range s.Nodes {
		if err := process.Stop(f.pidFile(n.Name), stopGrace); err != nil {
			return errors.Join(err, held.Close())
		}
		for _, name := range []string{f.data(n.Name), f.config(n.Name), f.log(n.Name), f.log(n.Name) + ".1"} {
			err = errors.Join(err, os.RemoveAll(name))
		}
	}
	err = errors.Join(err, os.RemoveAll(f.certificates()), os.RemoveAll(f.curl()), os.RemoveAll(f.bucket()), dropInfo(f))
	if err == nil {
		err = os.Remove(f.state()) // last: until then it is a cluster
	}
	return errors.Join(err, held.Close())
}
