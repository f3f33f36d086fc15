// Package bucket is the object store that bulk registrations read: a folder, or a
// bucket of a cloud by its URL. Each tenant has its own folder in it, with the
// tenant's id as its name. No filename leads outside that folder.
//
// The drivers of the clouds are in package clouds, which a program imports for its
// side effect. The package may import router/jobs and internal packages, and
// gocloud.dev.
package bucket
