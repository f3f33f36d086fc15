// Package restart measures how soon a node serves after a restart with a million
// templates on its disk. It founds a cluster of one node, stops the node, and fills its
// shards through their Raft groups. Then it starts the node on one core. It measures
// the time until the node is ready, and the time until a search over every template is
// answered. For comparison it measures the unavoidable work on that core: to read the
// same files, to decrypt the same bytes, and to touch as much new memory.
package restart
