// Command facet is the one program of the service: a node (serve), a whole cluster
// on this machine (dev), and the commands of operators and of tenants.
//
// This package only connects commands, flags and exit codes. The work is in its
// sub-packages: config, serve, dev, admin, authority, process, doctor, debug, demo, importing,
// bench, models, photos, signature, tenant, and cli and table, which others share.
package main
