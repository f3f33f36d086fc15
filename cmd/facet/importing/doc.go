// Package importing registers folders of photos with jobs. It copies the photos to
// the tenant's place in the object store, starts jobs, shows their progress, and
// removes its copies again. It calls the cluster like any client. It may import
// client, gocloud.dev and node/bucket.
package importing
