package backup

import (
	"cmp"
	"context"
	"slices"

	"facet/internal/id"
	"facet/node/bucket"
	"facet/shard"
	"facet/shard/seal"
)

// newerBackup is a later backup of the same cluster. It shows which subjects were erased
// since.
type newerBackup struct {
	Manifest
	key *seal.Key
}

// newer returns the later finished backups of the same cluster that have all wanted
// galleries, the newest first. sealed names the later backups that neither of the two keys
// opens. With WithErased newer returns no backups.
//
// A subject with an event in the older backup and none in a newer one was erased in between,
// even if its deleted entries were recycled since.
func (r *restoration) newer(ctx context.Context) (found []*newerBackup, sealed []string, err error) {
	if r.WithErased {
		return nil, nil, nil
	}
	list, err := List(ctx, r.folder)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(list, func(a, b Listed) int { return b.Created.Compare(a.Created) })
	for _, l := range list {
		if !l.Finished || !l.Created.After(r.manifest.Created) {
			continue
		}
		keys := []*seal.Master{r.From, r.To}
		i := slices.IndexFunc(keys, func(k *seal.Master) bool { return KeyCheck(k) == l.Key })
		if i < 0 {
			sealed = append(sealed, l.Name)
			continue
		}
		master := keys[i]
		m, err := readManifest(ctx, r.folder, l.Name, master)
		if err != nil {
			return nil, nil, err
		}
		if m.Cluster == r.manifest.Cluster && m.Shards == r.manifest.Shards && m.covers(r.want) {
			found = append(found, &newerBackup{m, keyOf(master, l.Name)})
		}
	}
	return found, sealed, nil
}

// covers reports whether a backup has all of these galleries.
func (m Manifest) covers(want chosen) bool {
	if len(m.Galleries) == 0 {
		return true
	}
	for g := range want {
		if !slices.Contains(m.Galleries, g) {
			return false
		}
	}
	return true
}

// readSince reads which subjects the newer backup has in the loader's shard. A gallery that
// is missing there was deleted since, and comes back as it was.
func (l *loader) readSince() error {
	if l.since == nil {
		return nil
	}
	l.alive, l.known = map[Erasure]bool{}, map[id.Gallery]bool{}
	var g id.Gallery
	v := visit{
		slice: func(s *shard.CopiedSlice) error { g, l.known[s.Gallery] = s.Gallery, true; return nil },
		entry: func(e *shard.CopiedEntry) error {
			if !e.Deleted {
				l.alive[Erasure{Gallery: g, Subject: e.Subject}] = true
			}
			return nil
		},
	}
	_, err := visitPart(l.ctx, l.folder, l.since.key, place{l.since.Name, PartName(l.shard)}, v)
	return err
}

// isErased reports whether a subject must not come back.
func (l *loader) isErased(e Erasure) bool {
	return l.erased[e] || l.known[e.Gallery] && !l.alive[e]
}

// Deleted returns the subjects that a backup knows as erased: those with deleted entries and
// no active event.
func Deleted(ctx context.Context, f *bucket.Folder, name string, master *seal.Master) ([]Erasure, error) {
	m, err := readManifest(ctx, f, name, master)
	if err != nil {
		return nil, err
	}
	list := []Erasure{}
	for _, p := range m.Contents.Parts {
		var g id.Gallery
		active := map[id.Subject]bool{}
		v := visit{
			slice: func(s *shard.CopiedSlice) error { g = s.Gallery; clear(active); return nil },
			entry: func(e *shard.CopiedEntry) error { active[e.Subject] = active[e.Subject] || !e.Deleted; return nil },
			end: func(Slice) error {
				for s, is := range active {
					if !is {
						list = append(list, Erasure{Gallery: g, Subject: s})
					}
				}
				return nil
			},
		}
		if _, err := visitPart(ctx, f, keyOf(master, name), place{name, p.Name}, v); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, compareErasures)
	return list, nil
}

func compareErasures(e, o Erasure) int {
	return cmp.Or(slices.Compare(e.Gallery.UUID[:], o.Gallery.UUID[:]), slices.Compare(e.Subject.UUID[:], o.Subject.UUID[:]))
}
