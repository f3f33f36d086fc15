// Package overload offers a node ten times the load that it can serve, with the node on
// one core and the clients on another. It prints what became of it: how much was served
// and how the rest was refused, what it cost another tenant, what idle, slow and forged
// connections do to others, and what memory it took.
package overload
