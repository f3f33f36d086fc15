// Package listener bounds the connections of a port.
//
// HTTP servers refuse surplus connections in their accept loop, and over TLS a silent
// client would stop that loop in its handshake. Here surplus connections are just
// closed. An address that has its share gets no more connections. When all connections
// are taken, the address with the most connections loses the one that has been without
// a request for the longest. So a client that holds unused connections does not keep
// out a client with a request.
//
// A refusal that is sent before the body was read could be lost: closing a TCP
// connection with unread bytes resets it, and the client, still sending, sees the
// reset and not the answer. So Conn.Linger closes such a connection for writing,
// reads on for a while, and only then closes it (as net/http does).
package listener
