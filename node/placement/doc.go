// Package placement decides which nodes hold which shards, and moves them there.
//
// It watches gossip, meta's records of nodes and its map of shards. On meta's leader it
// founds the cluster's records, takes nodes in, changes the map and meta's voters, and
// raises the cluster's level (KeepRecords). On every node it puts in the node's own record
// (Register), makes the next change of members of the groups that the node leads (Move),
// and hands leaderships to the members that the map names first (OfferLeaderships). Found
// runs once, before, and looks around every 200 ms; CheckFounding and CheckStanding end a
// node that does not belong to the cluster.
//
// Node's controller calls these steps, in one order and by one goroutine, every 500 ms and
// whenever meta changes.
package placement
