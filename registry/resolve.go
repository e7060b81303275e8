package registry

// ResolveTool finds a tool by its listed name, as server/tool, or by its bare
// name if exactly one server owns it. Errors: *[NotFoundError], *[AmbiguousError].
func (r *Registry) ResolveTool(name string) (Target, error) { return Target{}, nil }

// ResolvePrompt finds a prompt as server/prompt, as server_prompt, or by its
// bare name if exactly one server owns it. Errors as [Registry.ResolveTool].
func (r *Registry) ResolvePrompt(name string) (Target, error) { return Target{}, nil }

// ResolveResource finds what a client means by a URI. Errors as
// [Registry.ResolveTool].
func (r *Registry) ResolveResource(uri string) (Target, error) { return Target{}, nil }

// ResolveTemplate finds the template or resource that a completion reference
// names: a listed template, its raw form with one owner, or anything that
// [Registry.ResolveResource] takes.
func (r *Registry) ResolveTemplate(ref string) (Target, error) { return Target{}, nil }

// ListedURI returns the form in which clients see a server's URI. O(1).
func (r *Registry) ListedURI(server, original string) string { return "" }

// Learn notes a URI that the server itself returned (a link in a result, the
// URI of contents or of an update), which makes it readable. It is kept in a
// bounded LRU per server, and ignored when the server lists it.
func (r *Registry) Learn(server, original string) {}
