// Package importing registers folders of photos with a job: it puts the photos
// into the tenant's place of the object store, begins jobs, shows how they fare,
// and takes its copies away again. It speaks to the cluster as any client does. It
// may import client, gocloud.dev and node/bucket.
package importing
