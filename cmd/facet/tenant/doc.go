// Package tenant has the commands with which a tenant works on its galleries: it makes galleries,
// applications and tags, enrols, searches and verifies photos, and lists subjects and jobs. The
// commands call the public interface with an access key, by clients/go, and never the admin port.
//
//	profile.go      which cluster and which keys: a profile
//	session.go      what one command works with; how it finds the gallery
//	photo.go        files of photos, bounded
//	words.go        refusals in words that help a person
//	bench.go        how often a cluster refuses and is wrong
//	gallery.go …    the other commands
package tenant
