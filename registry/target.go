package registry

import (
	"fmt"
	"strings"

	"goblin/registry/suggest"
)

// Target is the destination of a request.
type Target struct {
	Server   string // [Local] for Goblin's own
	Name     string // the server's own name, byte for byte
	Listed   string // canonical form for clients
	Entry    *Entry // nil for template expansions and learned links
	Template *Entry // the matching template, if any
	Local    *LocalHandler
}

// LocalHandler is the handler of one of Goblin's own entries. One field is set.
type LocalHandler struct {
	Resource *LocalResource
	Tool     *LocalTool
}

// Values of [NotFoundError].Reason for resources.
const (
	ReasonNotFound  = "Resource not found"
	ReasonMalformed = "Invalid namespaced URI format"
	ReasonTemplates = "too many templates to match"
)

// NotFoundError reports an unknown name.
type NotFoundError struct {
	Kind          Kind
	Name          string // as requested, cut at the limit for names
	Owner         string // server with the name's prefix, or ""
	Reason        string
	Nearest       []string // similar listed names, best first
	MissingReason string   // not set by the registry
}

func (e *NotFoundError) Error() string {
	if e.Kind == Resource || e.Kind == Template || e.Kind == Skill {
		return "RESOURCE_NOT_FOUND: " + e.Reason + ": " + e.Name
	}
	text := fmt.Sprintf("unknown %s %q", e.Kind, e.Name)
	if e.MissingReason != "" {
		return text + ": " + e.MissingReason // similar names would mislead
	}
	return text + suggest.DidYouMean(e.Nearest...)
}

// AmbiguousError reports a name with several matches.
type AmbiguousError struct {
	Kind       Kind
	Name       string   // as requested
	Candidates []string // listed names, at most 20
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("AMBIGUOUS: %s %q has several matches; use a full name: %s",
		e.Kind, e.Name, strings.Join(e.Candidates, ", "))
}
