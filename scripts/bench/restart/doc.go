// Package restart measures how soon a node serves again that was stopped with a million
// templates on its disk. It founds a cluster of one node and fills its shards through
// their Raft groups while the node is stopped. Then it starts the node on one core, and
// measures until the node is ready, and until a search has come back that had to look at
// every template. Beside that it measures what can't be avoided on that core: to read
// the same files, to decrypt the same bytes, and to touch as much new memory.
package restart
