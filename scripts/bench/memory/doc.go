// Package memory measures what an event takes of a node's memory, by kind, beside what a row takes in
// FAISS. It founds a cluster of one node, stops the node, and fills its shards through their Raft
// groups. Then it starts the node twice: once with all exact numbers of templates in memory, once with
// so little memory that they stay on disk, or with the memory that a flag sets. Each time it reads the
// memory that is resident, less that of a node with one event, and the node's own estimate, and times
// searches.
package memory
