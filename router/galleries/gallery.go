package galleries

import (
	"context"
	"errors"
	"fmt"

	"facet/internal/id"
	"facet/internal/settings"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/secrets"
	"facet/shard"
	"facet/shard/seal"
)

// An API key has apiKeyLength characters of apiKeyAlphabet.
const apiKeyLength = 40

// CreateGallery creates a gallery and its first application. Its name must be
// unique within the tenant. Otherwise the error is Duplicate, and its message
// contains the API key of the gallery's oldest application.
func (r *GalleryRequests) CreateGallery(ctx context.Context, tenant id.Tenant, w router.Write, n router.NewGallery) (router.Gallery, error) {
	return secrets.WithRotationRetry(func() (router.Gallery, error) { return r.createGallery(ctx, tenant, w, n) })
}

func (r *GalleryRequests) createGallery(ctx context.Context, tenant id.Tenant, w router.Write, n router.NewGallery) (router.Gallery, error) {
	record, ok := r.cluster.Groups.Meta().Cluster()
	if !ok {
		return router.Gallery{}, &router.Error{Kind: router.Unavailable, Message: "the cluster is not founded yet", RetryAfter: calls.RetryLater}
	}
	gallery := metafsm.Gallery{
		ID: id.Gallery{UUID: cluster.RandomID()}, Tenant: tenant, Gallery: n.Gallery,
		Shards: record.ShardCount(n.Size), Generation: 1, Epoch: 1,
	}
	cluster.MustRandom(gallery.IDKey[:])
	dataKey := make([]byte, seal.KeyBytes)
	cluster.MustRandom(dataKey)
	gallery.WrappedKey = r.cluster.Master.Wrap(dataKey, []byte(secrets.PurposeData+gallery.ID.String()))
	first := settings.Defaults[settings.Application]()
	first.Name, first.Description, first.MinimumQuality = n.Name, n.Description, n.MinimumQuality
	app := r.newApplication(tenant, router.NewApplication{Gallery: gallery.ID, Application: first})
	write := cluster.Stamped(w)
	a, err := proposeNamed(ctx, r, metafsm.CreateGalleryOp, metafsm.CreateGallery{
		Write: write, Gallery: gallery, Application: app,
	}, deletion{tenant, n.Name}, func(a metafsm.CreateGalleryAnswer) metafsm.Status { return a.Status })
	if err != nil {
		return router.Gallery{}, err
	}
	switch a.Status {
	case metafsm.Done, metafsm.Replayed:
		if a.Application.ID.IsZero() {
			return router.Gallery{}, admission.DeletedSince("", "application")
		}
		gallery.ID = a.Gallery.ID // of the first try, with its settings
		return r.galleryWith(gallery, a.Application)
	case metafsm.UnknownGallery:
		return router.Gallery{}, admission.DeletedSince("", "gallery")
	case metafsm.BeingDeleted:
		return router.Gallery{}, nameInUse()
	case metafsm.Exists:
		if a.Application.ID.IsZero() {
			return router.Gallery{}, router.Errorf(router.Duplicate, "", "a gallery with this name exists, and has no application")
		}
		key, err := r.apiKey(a.Application)
		if err != nil {
			return router.Gallery{}, err
		}
		return router.Gallery{}, router.Errorf(router.Duplicate, "", "a gallery with this name exists; its API key: %s", key)
	default:
		return router.Gallery{}, admission.ManageError(ctx, r.cluster, "create gallery", tenant, write, a.Status)
	}
}

// Galleries returns the tenant's galleries in order of creation, with their counts.
func (r *GalleryRequests) Galleries(ctx context.Context, tenant id.Tenant) ([]router.Gallery, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return nil, err
	}
	records := r.cluster.Groups.Meta().Galleries(tenant)
	counts, err := r.counts(ctx, records)
	if err != nil {
		return nil, err
	}
	list := make([]router.Gallery, 0, len(records))
	for _, g := range records {
		list = append(list, galleryOf(g, counts[g.ID]))
	}
	return list, nil
}

// Gallery returns one gallery of the tenant with its count and applications. The
// error is NotFound for an unknown gallery and for another tenant's.
func (r *GalleryRequests) Gallery(ctx context.Context, tenant id.Tenant, gallery id.Gallery) (router.Gallery, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return router.Gallery{}, err
	}
	record, ok := r.cluster.Groups.Meta().Gallery(gallery)
	if !ok || record.Tenant != tenant {
		return router.Gallery{}, router.Errorf(router.NotFound, "", "there is no gallery with this id")
	}
	counts, err := r.counts(ctx, []metafsm.Gallery{record})
	if err != nil {
		return router.Gallery{}, err
	}
	out := galleryOf(record, counts[gallery])
	for _, a := range r.cluster.Groups.Meta().Applications(tenant) {
		if a.Gallery != gallery {
			continue
		}
		app, err := r.applicationOf(a)
		if err != nil {
			return router.Gallery{}, err
		}
		out.Applications = append(out.Applications, app)
	}
	return out, nil
}

// counts returns the number of active events of each gallery. It calls each shard
// once.
func (r *GalleryRequests) counts(ctx context.Context, galleries []metafsm.Gallery) (map[id.Gallery]int, error) {
	record, _ := r.cluster.Groups.Meta().Cluster()
	var ids []id.Gallery
	var shards []id.Shard
	seen := map[id.Shard]bool{}
	for _, g := range galleries {
		ids = append(ids, g.ID)
		for _, s := range metafsm.ShardsOf(g.ID, g.Shards, record.Shards) {
			if !seen[s] {
				seen[s] = true
				shards = append(shards, s)
			}
		}
	}
	answers, err := calls.Scatter(ctx, r.cluster.Calls, shardCounts, shards, ids)
	if err != nil {
		return nil, err
	}
	counts := map[id.Gallery]int{}
	for _, answer := range answers {
		if len(answer) != len(ids) {
			return nil, errors.New("count events: a shard's answer has another length")
		}
		for i, n := range answer {
			counts[ids[i]] += n
		}
	}
	return counts, nil
}

// CreateApplication creates an application of one of the tenant's galleries.
func (r *GalleryRequests) CreateApplication(ctx context.Context, tenant id.Tenant, w router.Write, n router.NewApplication) (router.Application, error) {
	return secrets.WithRotationRetry(func() (router.Application, error) { return r.createApplication(ctx, tenant, w, n) })
}

func (r *GalleryRequests) createApplication(ctx context.Context, tenant id.Tenant, w router.Write, n router.NewApplication) (router.Application, error) {
	write := cluster.Stamped(w)
	app := r.newApplication(tenant, n)
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.CreateApplicationOp, metafsm.CreateApplication{Write: write, Application: app})
	if err != nil {
		return router.Application{}, err
	}
	switch a.Status {
	case metafsm.Done, metafsm.Replayed:
		app.ID, app.SealedKey = a.Application.ID, a.Application.SealedKey // of the first try, with its settings
		return r.applicationOf(app)
	case metafsm.UnknownGallery:
		return router.Application{}, router.Errorf(router.InvalidRequest, router.ReasonUnknownGallery, "there is no gallery with this galleryId")
	case metafsm.UnknownApplication:
		return router.Application{}, admission.DeletedSince("", "application")
	default:
		return router.Application{}, admission.ManageError(ctx, r.cluster, "create application", tenant, write, a.Status)
	}
}

// Applications returns the tenant's applications in order of creation.
func (r *GalleryRequests) Applications(ctx context.Context, tenant id.Tenant) ([]router.Application, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return nil, err
	}
	list := []router.Application{}
	for _, a := range r.cluster.Groups.Meta().Applications(tenant) {
		app, err := r.applicationOf(a)
		if err != nil {
			return nil, err
		}
		list = append(list, app)
	}
	return list, nil
}

// Application returns one application of the tenant. The error is NotFound for an
// unknown application and for another tenant's.
func (r *GalleryRequests) Application(ctx context.Context, tenant id.Tenant, application id.Application) (router.Application, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return router.Application{}, err
	}
	a, ok := r.cluster.Groups.Meta().Application(application)
	if !ok || a.Tenant != tenant {
		return router.Application{}, router.Errorf(router.NotFound, "", "there is no application with this id")
	}
	return r.applicationOf(a)
}

func (r *GalleryRequests) newApplication(tenant id.Tenant, n router.NewApplication) metafsm.Application {
	key := cluster.RandomText(apiKeyLength)
	app := metafsm.Application{
		ID: id.Application{UUID: cluster.RandomID()}, Tenant: tenant, Gallery: n.Gallery, Application: n.Application,
	}
	app.KeyMAC = r.cluster.Master.MAC(secrets.PurposeAPIKey, []byte(key))
	app.SealedKey = r.cluster.Master.Wrap([]byte(key), []byte(secrets.PurposeAPIKey+app.ID.String()))
	return app
}

func (r *GalleryRequests) apiKey(a metafsm.Application) (string, error) {
	key, err := r.cluster.Master.Unwrap(a.SealedKey, []byte(secrets.PurposeAPIKey+a.ID.String()))
	if err != nil {
		return "", fmt.Errorf("unwrap the key of application %s: %w", a.ID, err)
	}
	return string(key), nil
}

func galleryOf(g metafsm.Gallery, count int) router.Gallery {
	return router.Gallery{ID: g.ID, Gallery: g.Gallery, ETag: g.ETag(), Count: count}
}

func (r *GalleryRequests) galleryWith(g metafsm.Gallery, a metafsm.Application) (router.Gallery, error) {
	app, err := r.applicationOf(a)
	out := galleryOf(g, 0)
	out.Applications = []router.Application{app}
	return out, err
}

func (r *GalleryRequests) applicationOf(a metafsm.Application) (router.Application, error) {
	key, err := r.apiKey(a)
	return router.Application{ID: a.ID, Gallery: a.Gallery, APIKey: key, Application: a.Application, ETag: a.ETag()}, err
}

// shardCounts returns the number of active events of each gallery.
var shardCounts = cluster.ShardRead("shard.counts", func(s *shard.Shard, galleries []id.Gallery) ([]int, error) {
	counts := make([]int, len(galleries))
	for i, g := range galleries {
		counts[i] = int(s.Usage(g).Active)
	}
	return counts, nil
})
