// Command facet is the one program of the service: a node (serve), a whole cluster
// on this machine (dev), and what operators ask and tell a cluster.
//
// This package only wires: commands, flags, exit codes. The work is in its
// sub-packages: config, serve, dev, admin, authority, process, demo, importing,
// bench, models, photos.
package main
