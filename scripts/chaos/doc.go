// Command chaos attacks a cluster of real processes and checks what its clients saw.
//
// It builds the cluster on a LAN of its own, which needs network namespaces and root.
// With -loopback it uses this machine's loopback, and can only stop, pause and kill
// nodes. A seeded nemesis injects faults, one or two at a time. Meanwhile concurrent
// clients register, update, remove, merge, verify and search faces, with tags. They repeat
// each write with its Idempotency-Key until they have an answer. At the end chaos
// undoes all faults and checks that
//
//   - the history of each subject is linearizable (porcupine): from registration to
//     removal every search finds its events, each with its face and tags;
//   - each face of two subjects that are merged is found under one of them or both, and
//     at the end under the target;
//   - the list of each node, as one more reading of each subject, shows nothing lost,
//     doubled or back after its removal;
//   - the small gallery never held more than its size.
//
// It prints the faults, what clients saw, and the verdict. After a failure the folder
// that it names has the histories, logs and data directories.
//
// It runs a facet built with the tag chaos. That facet takes templates from a hash of
// the image's bytes, so that the models' speed does not hide the cluster's.
//
// The command may import every package of this module.
package main
