package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"facet/internal/testkit"
)

// scanning looks for what must not lie on disks and in logs.
type scanning struct{ *attack }

// leftovers scans the disks and logs of all nodes, the removed one included, for what the
// tenants have sent and got. It looks inside compressed frames, too.
func (a scanning) leftovers(c *tally) error {
	secret, named, err := a.needles()
	if err != nil {
		return err
	}
	maps.Copy(named, secret)
	if err := named.Check(); err != nil {
		return err
	}
	files, size := 0, 0
	for _, n := range a.info.Nodes {
		for path, needles := range map[string]testkit.Needles{n.Dir: secret, n.Log: named} {
			more, bytes, err := needles.Below(path, func(file string, what []string) { c.got("%s has %v in the clear", file, what) })
			if err != nil {
				return err
			}
			files, size = files+more, size+bytes
		}
	}
	c.tries = files * len(named)
	c.note("%d files, %.1f MB, %d things to find", files, float64(size)/1e6, len(named))
	if files < nodes*5 {
		return errors.New("there are hardly any files: nothing was scanned")
	}
	return nil
}

// needles returns what the tenants have sent and got: secrets, and names, which only logs
// must not have.
func (a scanning) needles() (secret, named testkit.Needles, err error) {
	secret, named = testkit.Needles{}, testkit.Needles{}
	engine, err := a.files.Engine(1)
	if err != nil {
		return nil, nil, err
	}
	defer engine.Close()
	for name, photo := range a.photos {
		faces, err := engine.Extract(context.Background(), photo)
		if err != nil || len(faces) != 1 {
			return nil, nil, fmt.Errorf("extract %s: %d faces, %w", name, len(faces), err)
		}
		secret.AddPhoto(name, photo, faces[0].Template)
	}
	for _, t := range []*tenant{a.victim, a.thief} {
		for what, text := range map[string]string{
			"the admin's secret key": t.admin.Signer.SecretKey, "the biometric secret key": t.biometric.Signer.SecretKey, "the read-only secret key": t.only.Signer.SecretKey,
			"an API key": t.gallery.apiKey, "the second API key": t.second.apiKey, "the sibling's API key": t.sibling.apiKey,
		} {
			secret[what+" of "+t.name] = []byte(text)
		}
		for what, text := range map[string]string{
			"the tenant's name": t.name, "a gallery's name": t.gallery.name, "a tag": t.tag, "a file's name": "canary-file-" + t.name, "an application's name": strings.Replace(t.name, "tenant", "application", 1),
		} {
			named[what+", "+text] = []byte(text)
		}
	}
	for _, s := range a.victim.subjects {
		named["the subject "+s.ID] = []byte(s.ID)
	}
	return secret, named, nil
}
