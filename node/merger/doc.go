// Package merger continues merges of subjects: the client that asked for one, or the leader that began it, may
// have ended. It imports node/loop.
package merger
