package settings

// Gallery are the settings of a gallery. The keys of records are below 64.
type Gallery struct {
	Name        string `cbor:"3,keyasint" json:"name"`
	Description string `cbor:"4,keyasint" json:"description"`
	// Size is the most active events.
	Size uint32 `cbor:"5,keyasint" json:"size"`
	// RetentionDays is how long events stay after their last update. 0 is for ever.
	RetentionDays uint32 `cbor:"25,keyasint,omitempty" json:"retentionDays,omitzero"`
	// SubjectTemplates gives each subject with two or more events the mean of their templates beside them.
	SubjectTemplates bool `cbor:"28,keyasint,omitempty" json:"subjectTemplates,omitzero"`
	// PhotoLink is where people see the photo of a subject: a URL with {externalId}, or empty.
	PhotoLink string `cbor:"29,keyasint,omitempty" json:"photoLink,omitzero"`
	// Purpose is what the gallery's faces are processed for, LegalGround what permits it, and Recipients who
	// else gets the results. They are texts for the record of processing.
	Purpose     string `cbor:"30,keyasint,omitempty" json:"purpose,omitzero"`
	LegalGround string `cbor:"31,keyasint,omitempty" json:"legalGround,omitzero"`
	Recipients  string `cbor:"32,keyasint,omitempty" json:"recipients,omitzero"`
}

// forRecord ends the descriptions of texts for the record of processing.
const forRecord = " facet keeps the text for the record of processing and does not act on it. It has no control characters. An empty text is none."

var galleryFields = []Field{
	nameField, descriptionField,
	{
		Name: "size", Min: 1, Max: 1<<31 - 1, Required: true, Core: true,
		Doc: "Capacity in events. It can only grow.", Shown: "Capacity in events.", Example: "2000",
	},
	{
		Name: "retentionDays", Max: 36500, Example: "90",
		Doc:   "Days after its last update at which an event of the gallery expires; 0 is never. A change counts for the events that exist.",
		Shown: "Days after its last update at which an event of the gallery expires. Absent if never.",
		Help:  "remove photos so many days after their last update; 0: never",
	},
	{
		Name: "subjectTemplates", Example: "true",
		Doc:   "Whether a subject with two or more events is also compared by a template of its own, the mean of theirs. A change counts for the subjects that exist.",
		Shown: "A subject with two or more events is also compared by the mean of their templates. Absent if not.",
		Help:  "compare a person with several photos by the mean of their templates, too",
	},
	{
		Name: "photoLink", Max: 1024, Check: photoLinkFault, Example: `"https://hr.example/photos/{externalId}.jpg"`,
		Doc: "Where people see the photo of a subject: an https URL (http on the viewer's own machine) with {externalId} after its host, which becomes the percent-encoded external id. " +
			"facet keeps no photos and never follows the link. An empty text is none.",
		Shown: "Where people see the photo of a subject: a URL with {externalId}. Absent if there is none.",
		Help:  "where people see the photo of a subject: an https URL with {externalId}",
	},
	{
		Name: "purpose", Max: lineMax, Check: lineFault, Example: `"entry of staff to the laboratory"`,
		Doc:   "What the faces of the gallery are processed for." + forRecord,
		Shown: "What the faces of the gallery are processed for. Absent if there is none.",
		Help:  "what the faces are processed for, for the record of processing",
	},
	{
		Name: "legalGround", Max: lineMax, Check: lineFault, Example: `"GDPR Art. 9(2)(a), explicit consent"`,
		Doc:   "What permits it." + forRecord,
		Shown: "What permits the processing. Absent if there is none.",
		Help:  "what permits it, for the record of processing",
	},
	{
		Name: "recipients", Max: lineMax, Check: lineFault, Example: `"the security service of the building"`,
		Doc:   "Who else gets results of the gallery." + forRecord,
		Shown: "Who else gets results of the gallery. Absent if there is none.",
		Help:  "who else gets results, for the record of processing",
	},
}
