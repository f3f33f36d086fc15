// Package answers describes the bodies of the service's answers. Each field is described once: package httpapi
// fills the structs, and "make describe" writes from them the schemas of openapi.json and the types of the clients.
//
// A field without omitzero is always there. Comments become the descriptions of schemas and of the clients' types:
// names of fields get the spelling of the language, and "Absent" becomes the value that a client has for an absent
// field.
//
// The tag schema says what the type does not:
//
//	ext         extends the interface
//	v1.1        only version 1 leaves it out
//	client      only clients have it
//	zero        a Go client has 0 if it is absent
//	min=, max=  bound a number, the characters of a text or the elements of a list
//	enum=a|b    lists the values
//
// Directives above a type:
//
//	facet:schema NAME  the schema's name, if it is not the type's; - if openapi.json has it
//	facet:view NAME …  a schema that always has these fields, which those beside it lack
//	facet:none NAME …  the schema of an answer that found nothing, and what it is
//	facet:ext          extends the interface
//	facet:frame        clients show its only field
package answers
