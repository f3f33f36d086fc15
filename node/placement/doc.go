// Package placement decides which nodes hold which shards, and moves them there.
//
// It watches gossip, meta's records of nodes and its map of shards.
//
//	Found             once, before the others: waits until the node belongs to a cluster
//	KeepRecords       on meta's leader: founds the records, takes nodes in, changes the map
//	                  and meta's voters, raises the cluster's level
//	CheckFounding     returns an error if the cluster has another model pack or key
//	CheckMembership   returns an error if this node was removed
//	Register          puts the node's own record into meta
//	Move              makes the next change of members of the groups that the node leads
//	OfferLeaderships  hands leaderships to the members that the map names first
//
// Node's controller calls the steps from one goroutine, in the order of its own list, every
// 500 ms and whenever meta changes. Purger runs beside it.
package placement
