// Package audit measures what the audit log costs: searches by photo and the shortest requests through
// three nodes, with the log off, with best effort and strict, in turns of one run.
package audit
