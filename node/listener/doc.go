// Package listener bounds the connections of a port.
//
// HTTP servers refuse surplus connections in their accept loop, and over TLS a silent
// client would stop that loop in its handshake. Here a connection makes room instead:
// when an address has its share, one of that address, and when all connections are
// taken, one of the address with the most. The oldest one without any request so far
// goes first, then the one that has been idle for the longest. So a client that holds
// unused connections does not keep out a client with a request. When all have a
// request, the new connection is closed.
//
// A refusal that is sent before the body was read could be lost: closing a TCP
// connection with unread bytes resets it, and the client, still sending, sees the
// reset and not the answer. So Conn.Linger closes such a connection for writing,
// reads on for a while, and only then closes it (as net/http does).
package listener
