// Package https makes signed requests over kept-alive connections, as a tenant's
// program does, for programs that measure: little more than the bytes of a request is
// made for each, so that the client takes less of the machine than a common one.
package https
