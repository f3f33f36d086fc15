// Package erasing finds a person in all galleries of a tenant, erases the person, and keeps the
// receipt of it.
//
// The tenant's access key finds and erases; an operator's connection to the cluster gets the
// receipt. Of other packages of cmd/facet it uses admin.
package erasing
