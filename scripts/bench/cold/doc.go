// Package cold measures searches whose exact rows are on disk, through a shard: its index, its
// segments and the decryption. Beside it runs the kernel of commit 2f6d1c7, which kept all exact rows in
// memory and had no shard around it. Both have the same templates and take turns. All hits of both are
// compared.
package cold
