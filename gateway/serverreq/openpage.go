package serverreq

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Page is a web page that Goblin asks a user to open for a server.
type Page struct{ Server, URL, Message string }

// SupportsURLElicitation reports whether the client of a request can be asked to open a
// [Page]. An anonymous client can't: another user of this machine could log Goblin in
// with their own account.
func SupportsURLElicitation(x *downstream.Request) bool {
	return x.CanAsk() && x.IsLocal() && !x.Session().Anonymous() && MissingCapability(x.Outer(), "elicitation", []byte(`{"mode":"url"}`)) == nil
}

// openPage asks the client of a request to open a page for its user and reports whether
// the user agreed. The caller calls opened to notify the client that its user is done.
// Cancelling ctx cancels the request.
func (a *Router) openPage(ctx context.Context, x *downstream.Request, p Page) (agreed bool, opened func(), err error) {
	const method = "elicitation/create"
	start, s := time.Now(), x.Session()
	id := "goblin-" + rand.Text()
	params := rawjson.Object("mode", "url", "elicitationId", id, "url", p.URL, "message", p.Message)
	if s.IsScreen() {
		params = addAsker(params, registry.Asker{Server: p.Server, Why: registry.AskOwnCall})
	}
	reply, err := x.Ask(ctx, method, params)
	refusal := replyError(reply)
	if err != nil {
		refusal = jsonrpc.Errorf(jsonrpc.CodeInternal, "the client did not answer: %s", err)
	}
	base, _, _ := strings.Cut(p.URL, "?") // the query is private to the user
	a.o.Journal.RecordServerRequest(x, s, p.Server, method, rawjson.SetMember(params, "url", rawjson.Quote(base)), reply.Result, refusal, start, nil)
	opened = func() {
		if x.Modern() != nil {
			return // modern clients have no such notification
		}
		done := rawjson.Object("elicitationId", id)
		x.NotifyLatest("elicited:"+id, "notifications/elicitation/complete", done)
		a.o.Journal.RecordNotification(registry.ToClient, s, p.Server, "notifications/elicitation/complete", "", done)
	}
	if refusal != nil {
		return false, opened, refusal
	}
	action := rawjson.GetString(reply.Result, "action")
	return action == "accept", opened, nil
}
