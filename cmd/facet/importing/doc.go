// Package importing brings lists and folders of photos into a gallery. It calls the
// cluster like any client, with a tenant's profile alone. Each row is one registration
// with an Idempotency-Key of the run and the row. The run's identity is in the state beside
// the report, so the same command, started again, continues and doubles nothing, and another
// list is another run. With an object store, jobs register the photos first; what they leave
// over is registered directly.
//
//	import.go    the configuration, and one import from begin to end
//	ready.go     what comes before the first photo: the key's role, the gallery's room
//	feed.go      rows in order, those of one person one after the other
//	enrol.go     what one row does: a subject, another event, a replacement, nothing
//	correct.go   rows that were changed since they came in, in the list or in the gallery
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
