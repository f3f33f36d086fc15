// The words of the console, in one place for translation.

export const texts = {
  product: "facet",
  subtitle: "face matching",
  loading: "Asking the service …",
  works: "It works.",
  version: (/** @type {string} */ version) => `facet ${version}`,
  servedByNode: "This page comes from a node of the cluster.",
  servedByLoopback: "This page comes from facet console on this computer, which signs what you do.",
  signedOut: "This address was opened before, or the session has ended. Start facet console again and open the address that it prints.",
  unreachable: "The service does not answer. Is the node running?",
};
