// Package reading reads audit logs for those who may: pages of records, and the files of C2SP's tlog-tiles.
//
// The port of clients serves tenants' logs with it, the port of operators the cluster's. The package may
// import router and node/audit/entry.
package reading
