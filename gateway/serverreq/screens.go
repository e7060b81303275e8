package serverreq

import (
	"context"
	"errors"

	"goblin/gateway/downstream"
	"goblin/gateway/extensions"
	"goblin/registry/rawjson"
)

// UserCanAnswer reports whether a server refused a call for want of what the user of
// an open screen can do.
func (a *Router) UserCanAnswer(refusal []byte) bool {
	code, _ := rawjson.Int(rawjson.Get(refusal, "code"))
	if code != downstream.CodeMissingCapability || a.openScreens.Load() == 0 {
		return false
	}
	may := false
	for k := range rawjson.Members(rawjson.Path(refusal, "data", "requiredCapabilities")) {
		if may = k.Is("elicitation") || k.Is("sampling"); !may {
			break
		}
	}
	return may
}

// Capabilities are those of a client as far as a server's questions reach it, and its
// extensions. Roots
// are there too when the configuration has some, and all that the user of a screen
// can answer while one is open, or is to be taken for that.
func (a *Router) Capabilities(declared []byte, screen bool) []byte {
	screen = screen || a.openScreens.Load() > 0
	out := []byte{'{'}
	for _, name := range []string{"elicitation", "roots", "sampling"} {
		value := rawjson.Get(declared, name)
		switch {
		case name == "roots" && (rawjson.IsObject(value) || len(*a.roots.Load()) > 0):
			value = empty // listChanged has no place in it any more
		case name == "elicitation" && screen:
			value = withModes(value)
		case name == "sampling" && screen && !rawjson.IsObject(value):
			value = empty
		case !rawjson.IsObject(value):
			continue
		}
		out = rawjson.AppendMember(out, rawjson.Quote(name), value)
	}
	if own := extensions.ServerCapabilities(declared); own != nil {
		out = rawjson.AppendMember(out, rawjson.Quote("extensions"), own)
	}
	return append(out, '}')
}

// withModes is the capability of elicitation in both of its modes.
func withModes(declared []byte) []byte {
	if !rawjson.IsObject(declared) {
		declared = empty
	}
	for _, mode := range []string{"form", "url"} {
		if !rawjson.IsObject(rawjson.Get(declared, mode)) {
			declared = rawjson.SetMember(declared, mode, empty)
		}
	}
	return declared
}

// isCancelled reports whether a request ended without an answer, so that the client was sent
// its cancellation.
func isCancelled(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
