// Package clouds makes the object stores of clouds known to package bucket: S3 and
// what speaks its language, Google Cloud Storage, Azure Blob Storage. It is apart
// from it because their libraries are large. It imports gocloud.dev only.
//
// With the build tag slim it knows S3 only.
package clouds

import _ "gocloud.dev/blob/s3blob" // s3://
