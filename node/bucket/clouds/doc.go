// Package clouds makes the object stores of clouds known to package bucket: S3 and
// what speaks its language, Google Cloud Storage, Azure Blob Storage. It is apart
// from it because their libraries are large. It imports gocloud.dev only.
package clouds

import (
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
)
