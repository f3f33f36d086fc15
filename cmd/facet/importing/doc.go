// Package importing brings lists and folders of photos into a gallery. It calls the
// cluster like any client, with a tenant's profile alone. Each row is one registration
// with an Idempotency-Key of its content, so the same command, started again, goes on and
// doubles nothing. With an object store, jobs register the photos first; what they leave
// over is registered directly.
//
//	import.go    the configuration, and one import from begin to end
//	feed.go      rows in order, those of one person one after the other
//	enrol.go     what one row does: a subject, another event, a replacement, nothing
//	retry.go     which requests are sent again, and when the import gives up
//	gate.go      how many requests are under way
//	jobs.go      registration by jobs, through the object store
//	buffers.go   memory of photos
//	report.go    what became of each row, in the order of the rows
//	check.go     what an import would do, without doing it
//	judge.go     what a check says of each row, and its report
//	progress.go  rate and time left
//
// It may import client, gocloud.dev and node/bucket.
package importing
