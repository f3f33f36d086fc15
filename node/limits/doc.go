// Package limits refuses work that this node has no room for.
//
// It watches the memory that events take, the free space of the data directory's file
// system and the images that wait for the engine. It changes nothing. A node refuses
// registrations while memory or disk is short, and images while their tenant's line is
// full. A request measures the memory when the last result is 250 ms old. Run measures the
// disk each second.
package limits
