// Package audit makes the records of a node's requests durable.
//
//	request ── record ── line of its tenant ──┬── spool ─── this node's disk      best effort: the first of
//	                                          └── batch ─── the tenant's log,     the two ends the wait
//	                                                        on a majority         strict: the log ends it
//
// A Recorder seals each record, and a line gathers those of one tenant into batches. The batches of a line
// go to the log one after the other, numbered, so that a batch that is sent again has no second
// effect. The spool keeps the batches of tenants with best effort until the log has them. After a
// restart the Recorder sends what the spool has.
package audit
