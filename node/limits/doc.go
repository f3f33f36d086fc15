// Package limits refuses work that this node has no room for.
//
// It watches the memory that events take, the free space of the data directory's
// file system and the images that wait for the engine. It changes nothing but its own
// answer: registrations are refused while memory or disk is short, images while the
// line of a tenant is full. Memory is measured at most every 250 ms, when somebody
// asks; the disk each second, by Run; the queue is counted.
package limits
