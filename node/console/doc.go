// Package console has the files of the web console and of the interface's pages, and answers
// requests for them. Nodes serve them under /console and /docs on the port for clients, and
// `facet console` serves them on loopback.
//
// The files are in web and docs, as people wrote them: there is no build step. Libraries are in
// web/vendor; vendor.json has their versions and hashes, and "make console-vendor" compares
// them with the packages. Types are in JSDoc, which "make lint" checks; it finds the modules of
// other folders by two links, web/client and console, where a browser finds them by their addresses.
// Links are not embedded.
//
// Anybody may read the files. They know nothing of a cluster, and the policy in their headers
// keeps a page from every other host. The package imports the standard library, the JavaScript
// client's sources and the interface's description only.
package console
