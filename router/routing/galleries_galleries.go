package routing

// galleryRequests serves requests about galleries and applications.
type galleryRequests struct{ cluster *cluster }
