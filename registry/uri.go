package registry

// Norm returns the alias key of a URI.
func Norm(uri string) string { return uri }

// FlatID returns the plain flat id of a server's URI.
func FlatID(server, orig string) string { return "" }
