package backup

import (
	"bytes"
	"context"
	"errors"
	"io"

	"facet/node/bucket"
	"facet/shard/seal"
)

// Plain returns all that a backup holds, opened with the cluster's key.
func Plain(ctx context.Context, f *bucket.Folder, name string, master *seal.Master) ([]byte, error) {
	m, err := readManifest(ctx, f, name, master)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, p := range append(m.Contents.Parts, m.Meta) {
		r, _, err := f.Open(ctx, name+"/"+p.Name)
		if err != nil {
			return nil, err
		}
		in, err := openPart(r, keyOf(master, name), place{name, p.Name})
		for err == nil {
			var b []byte
			if b, err = in.next(); err == nil {
				all.Write(b)
			}
		}
		r.Close()
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return all.Bytes(), nil
}
