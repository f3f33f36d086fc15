// Package overload offers a node ten times the load that it can serve, with the node on
// one core and the clients on another. It prints how many requests the node served and
// how it refused the rest. It also prints what the load cost another tenant, what idle,
// slow and forged connections cost others, and how much memory the node took.
package overload
