// Command chaos attacks a cluster of real processes and checks what its clients saw.
//
// It builds the cluster on a LAN of its own (network namespaces; root), or with
// -loopback on this machine's loopback, where it can only stop, pause and kill. A
// seeded nemesis breaks things, one or two at a time; concurrent clients register,
// search and unregister faces, and repeat each write with its Idempotency-Key until
// they have an answer. In the end all is healed, and
//
//   - each subject's history must be linearizable (porcupine): found from its
//     registration on until its removal, in every answer of every search;
//   - the gallery must hold exactly the subjects that were acknowledged and not
//     removed: nothing lost, doubled or risen from the dead;
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
