package registry

import "context"

// Content is one part of what a resource contains.
type Content struct {
	URI    string // "": the URI that was read
	MIME   string // "": the listed type
	Text   string
	Blob   []byte // sent as base64
	IsBlob bool   // Blob counts, not Text
}

// LocalResource is a resource of Goblin's own. Its URI may have any scheme
// and is listed as it is.
type LocalResource struct {
	URI, Name, Title, Description, MIME string
	// Read is called for every read, from the goroutine of the request.
	Read func(ctx context.Context, uri string) ([]Content, error)
}

// LocalTool is a tool of Goblin's own, listed under its plain name.
type LocalTool struct {
	Definition []byte // raw MCP tool definition
	// Call gets the raw arguments object and returns the raw CallToolResult.
	Call func(ctx context.Context, args []byte) (result []byte, err error)
}

// AddResource lists resources of Goblin's own, all or none: it fails when a
// URI is taken, has no scheme, or has no Read.
func (r *Registry) AddResource(rs ...LocalResource) error { return nil }

// RemoveResource takes a local resource off the list.
func (r *Registry) RemoveResource(uri string) {}

// AddTool lists tools of Goblin's own, all or none: it fails when a name is
// taken or not 1 to 64 characters of [A-Za-z0-9_-], or when Call is missing.
// A server's tool of the same listed name gets a tail.
func (r *Registry) AddTool(ts ...LocalTool) error { return nil }

// RemoveTool takes a local tool off the list and frees its name.
func (r *Registry) RemoveTool(name string) {}

// ServersResource is goblin://servers: the state of every server as JSON.
func ServersResource(r *Registry) LocalResource { return LocalResource{} }
