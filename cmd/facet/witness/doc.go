// Package witness follows the checkpoints of audit logs, from elsewhere than their cluster, and
// cosigns each that continues what it has seen before (C2SP's tlog-cosignature). A log that was
// rolled back, forked or rewritten it reports, and never cosigns.
//
// Its state is a folder with the last cosigned checkpoint of each log, which a web server may serve:
// the monitoring part of tlog-witness. Each is written whole and synced before the next is fetched,
// so the end of the process at any moment loses no promise. One process at a time has the folder.
//
// Witness.Run has a goroutine for each log, and ends them. Of other packages of cmd/facet it uses
// auditing and process.
package witness
