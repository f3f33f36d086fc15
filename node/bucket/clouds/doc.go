// Package clouds registers the drivers of cloud object stores with package bucket:
// S3 and compatible stores, Google Cloud Storage, Azure Blob Storage. It is a
// package of its own because their libraries are large. It imports gocloud.dev
// only.
//
// With the build tag slim it knows S3 only.
package clouds

import _ "gocloud.dev/blob/s3blob" // s3://
