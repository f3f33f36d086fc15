package wire

import (
	"time"

	"facet/internal/id"
)

// PathProcessing returns the record of processing of a tenant (GET PathProcessing?tenant=NAME).
const PathProcessing = "/admin/tenants/record"

// Processing is the record of what a cluster does with a tenant's faces, for Article 30 of the GDPR.
type Processing struct {
	Made    time.Time  `json:"made"`
	Cluster id.Cluster `json:"cluster"`
	Tenant  id.Tenant  `json:"tenant"`
	Name    string     `json:"name"`
	State   string     `json:"state"` // of the tenant
	// Pack is the model pack that makes the templates.
	Pack      string             `json:"pack"`
	Audit     Audit              `json:"audit"`
	Galleries []ProcessedGallery `json:"galleries"`
	// Keys are the access keys that can be used now.
	Keys []Key `json:"keys"`
	// Backups is the schedule of the node that answered, or absent.
	Backups *BackupSchedule `json:"backups,omitempty"`
	// Nodes are the nodes that are not removed.
	Nodes []ProcessingNode `json:"nodes"`
	// ToDo says what the tenant has not stated.
	ToDo []string `json:"to_do"`
}

// ProcessedGallery is a gallery in a record of processing.
type ProcessedGallery struct {
	Gallery     id.Gallery `json:"gallery"`
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Purpose     string     `json:"purpose"`
	LegalGround string     `json:"legal_ground"`
	Recipients  string     `json:"recipients"`
	Faces       int        `json:"faces"` // active events; a subject may have several
	Size        int        `json:"size"`
	// RetentionDays is how long faces stay after their last update. 0 is for ever.
	RetentionDays int                    `json:"retention_days"`
	PhotoLink     string                 `json:"photo_link,omitempty"`
	Applications  []ProcessedApplication `json:"applications"`
}

// ProcessedApplication is an application of a ProcessedGallery.
type ProcessedApplication struct {
	Name            string `json:"name"`
	VerifyThreshold int    `json:"verify_threshold"`
	// ReviewThreshold is 0 if no match is reviewed. The next two are then 0, too.
	ReviewThreshold int `json:"review_threshold,omitempty"`
	ReviewVerdicts  int `json:"review_verdicts,omitempty"`
	ReviewDays      int `json:"review_days,omitempty"`
}

// BackupSchedule is where scheduled backups go, and how many stay.
type BackupSchedule struct {
	Folder string `json:"folder"`
	// EverySeconds is the time between two backups.
	EverySeconds int64 `json:"every_seconds"`
	Keep         int   `json:"keep"`
}

// ProcessingNode is a node that may have data of the tenant.
type ProcessingNode struct {
	Name string `json:"name"`
	Zone string `json:"zone,omitempty"`
}
