// Command packages builds what facet is released as: packages for Debian, RPM, pip and npm, container
// images, the Helm chart, bills of materials, and the checksums of all of them.
//
//	go run ./scripts/packages version [-write]       the version, from CHANGELOG.md
//	go run ./scripts/packages build [-only KINDS]    all of it, into dist/
//	go run ./scripts/packages digest IMAGE           the digest by which to pin a base image
//	go run ./scripts/packages licences               licences of all that facet ships, checked
//
// It runs in the repository's root. Nothing that it writes depends on the time, the machine or the
// folder: two builds of one commit are equal to the bit.
package main
