package serverreq

import (
	"context"
	"errors"

	"goblin/gateway/downstream"
	"goblin/gateway/extensions"
	"goblin/registry/rawjson"
)

// UserCanAnswer reports whether a server refused a call only because of capabilities that
// the user of an open UI has.
func (a *Router) UserCanAnswer(refusal []byte) bool {
	code, _ := rawjson.Int(rawjson.Get(refusal, "code"))
	if code != downstream.CodeMissingCapability || a.openUIs.Load() == 0 {
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

// Capabilities returns a client's capabilities that apply to requests from servers, and
// its extensions. It adds roots if gateway.roots is set. It adds elicitation and sampling
// if ui is set or any UI is open.
func (a *Router) Capabilities(declared []byte, ui bool) []byte {
	ui = ui || a.openUIs.Load() > 0
	out := []byte{'{'}
	for _, name := range []string{"elicitation", "roots", "sampling"} {
		value := rawjson.Get(declared, name)
		switch {
		case name == "roots" && (rawjson.IsObject(value) || len(*a.roots.Load()) > 0):
			value = empty
		case name == "elicitation" && ui:
			value = withModes(value)
		case name == "sampling" && ui && !rawjson.IsObject(value):
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

// isCancelled reports whether a request was cancelled, so the client received a
// cancellation.
func isCancelled(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
