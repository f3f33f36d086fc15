// Package job holds the bulk registrations of one shard: the files that each must register, and the
// outcome of each file. It also holds comparisons of galleries with themselves (the blocks of events to
// compare, and the pairs that each block has), the subjects of a gallery that somebody has found to be
// different, and the doubtful verifications that people review.
//
// The gallery's key seals filenames and outcomes. The package is part of a state machine: it
// decides by clear numbers only and reads no clock. It does not know who works on an item at the
// moment. The same item may be finished twice, and the first result counts. The layout of its
// records in shard/segment is no part of the state. It may import engine, shard/seal, shard/segment
// and internal packages.
package job
