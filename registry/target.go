package registry

import (
	"fmt"
	"strings"

	"goblin/registry/suggest"
)

// Target is where a request goes.
type Target struct {
	Server   string // [Local] for Goblin's own
	Name     string // to send to the server, byte for byte as it spells it
	Listed   string // canonical form that clients see
	Entry    *Entry // nil for expansions of templates and for learned links
	Template *Entry // the template that matched, if one did
	Local    *LocalHandler
}

// LocalHandler is the handler of something that is Goblin's own; one field is
// set.
type LocalHandler struct {
	Resource *LocalResource
	Tool     *LocalTool
}

// Reasons of a [NotFoundError] about a resource.
const (
	ReasonNotFound  = "Resource not found"
	ReasonMalformed = "Invalid namespaced URI format"
	ReasonTemplates = "too many templates to match"
)

// NotFoundError says that a name is in no table.
type NotFoundError struct {
	Kind          Kind
	Name          string // as requested, cut if it is longer than names may be
	Owner         string // the server whose prefix it has, so that nobody else can have it; "" for none
	Reason        string
	Nearest       []string // listed names that look like it, best first
	MissingReason string   // why it may be missing, if that is known; the registry leaves it empty
}

func (e *NotFoundError) Error() string {
	if e.Kind == Resource || e.Kind == Template || e.Kind == Skill {
		return "RESOURCE_NOT_FOUND: " + e.Reason + ": " + e.Name
	}
	text := fmt.Sprintf("unknown %s %q", e.Kind, e.Name)
	if e.MissingReason != "" {
		return text + ": " + e.MissingReason // what is like it is another
	}
	return text + suggest.DidYouMean(e.Nearest...)
}

// AmbiguousError says that a name fits several things.
type AmbiguousError struct {
	Kind       Kind
	Name       string   // as requested
	Candidates []string // listed names, at most 20
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("AMBIGUOUS: %s %q is one of several, use its full name: %s",
		e.Kind, e.Name, strings.Join(e.Candidates, ", "))
}
