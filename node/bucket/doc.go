// Package bucket is the object store that bulk registrations read: a folder, or a
// bucket of a cloud by its URL. Each tenant has its own place in it, a folder with
// the tenant's id as its name, and no filename leads out of that.
//
// The clouds themselves are in package clouds, which a program imports for effect.
// It may import router/jobs and internal packages, and gocloud.dev.
package bucket
