// Command chaos attacks a cluster of real processes and checks what its clients saw.
//
// It builds the cluster on a LAN of its own (network namespaces; root), or with
// -loopback on this machine's loopback, where it can only stop, pause and kill. A
// seeded nemesis breaks things, one or two at a time; concurrent clients register,
// update, remove, verify and search faces, with tags, and repeat each write with its Idempotency-Key until
// they have an answer. In the end all is healed, and
//
//   - each subject's history must be linearizable (porcupine): its events are found,
//     each with its face and tags, from registration to removal, by every search;
//   - the list that each node gives is one more reading of each subject: nothing is
//     lost, doubled or risen from the dead;
//   - the small gallery never held more than its size.
//
// What it did, what clients saw and the verdict are printed. A failure leaves
// histories, logs and data directories in the folder that is named.
//
// The facet that it runs is built with the tag chaos, which takes templates from a
// hash of the image's bytes, so that the models' speed does not hide the cluster's.
//
// The command may import every package of this module.
package main
