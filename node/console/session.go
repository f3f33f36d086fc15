package console

// How says which program serves a page.
type How string

// The programs: a node, where a person signs in, or `facet console`, which signs.
const (
	ByNode     How = "node"
	ByLoopback How = "loopback"
)

// Session is the description, for a page, of how it is served and of its rights. A page served by a node can do
// nothing until a person has signed in.
type Session struct {
	How     How    `json:"how"`
	Version string `json:"version"` // of the software that serves the page
	// Region is the region in the scope of request signatures.
	Region string `json:"region,omitzero"`
	// AccessKey is the access key that signs, and Nodes are the nodes that are called. Both are
	// empty where the page signs or where there is no tenant.
	AccessKey string   `json:"accessKey,omitzero"`
	Nodes     []string `json:"nodes,omitzero"`
	// APIKey is the API key of an application that `facet console` was given.
	APIKey string `json:"apiKey,omitzero"`
	// Rights are what the program does for the page.
	Rights []Right `json:"rights"`
}

// Right is something that `facet console` does for a page.
type Right string

// The rights: requests of the interface are signed with a tenant's key; the state of the cluster
// is at StatusPath.
const (
	RightTenant   Right = "tenant"
	RightOperator Right = "operator"
)

// StatusPath is where `facet console` shows what `facet status -o json` prints. At ReceiptPath it
// gets receipts of erasures, as `facet erase` does.
const (
	StatusPath  = "/admin/status"
	ReceiptPath = "/admin/receipts"
)
