// Package https sends signed requests over kept-alive connections for benchmarks, as a
// tenant's program does. For each request it computes little more than the request's
// bytes, so that it takes less of the machine than an ordinary client.
package https
