// Package job holds the bulk registrations of one shard: which files each is to
// register, and what became of each of them.
//
// What a batch asks for and what came of it is sealed with its gallery's key; the
// package decides on clear numbers only, is part of a state machine, and reads no
// clock. Who works on what at the moment is not its business: the same item may be
// finished twice, and the first result counts. In which files of shard/segment its
// records lie is no part of the state. It may import engine, shard/seal, shard/segment
// and internal packages.
package job
