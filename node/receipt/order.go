package receipt

// OrderBytesMax is the most bytes of an Order in JSON. A signed receipt takes a third more there.
const OrderBytesMax = BytesMax*3/2 + 64<<10

// Order asks a node of a cluster for a receipt.
type Order struct {
	// Subjects begin a receipt. The cluster fills in what it attests itself. All are of one tenant.
	Subjects []Subject `json:"subjects,omitempty"`
	// Signed is an earlier receipt instead, to be brought up to date.
	Signed []byte `json:"signed,omitempty"`
	// Folders are URLs of folders with backups, beside the folder of the scheduled ones.
	Folders []string `json:"folders,omitempty"`
	// Now orders rounds of erasure.
	Now bool `json:"now,omitempty"`
}

// Answer is a signed receipt, and the public key of the cluster that has signed it.
type Answer struct {
	Signed    []byte `json:"signed"`
	PublicKey string `json:"public_key"`
}
