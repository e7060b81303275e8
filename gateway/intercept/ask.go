package intercept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/rule"
	"goblin/registry/termtext"
)

// Choices of the form that a client's user gets.
const (
	allowOnce    = "allow once"
	allowSession = "allow for this session"
	denyChoice   = "deny"
)

// Limits of texts in the form, in characters.
const (
	maxAskedName   = 120
	maxAskedParams = 1000
)

// question returns the params of elicitation/create for the client's user. It returns nil
// if the rule does not demand it, or if the client cannot be asked.
func (g *Gate) question(x *Exchange, e *entry) []byte {
	if e.Ask != rule.AskClient || g.o.Ask == nil {
		return nil
	}
	choices := []string{allowOnce, allowSession, denyChoice}
	if x.Request.Session().Stateless() || approvable[x.Request.Method()] == "" || e.On == rule.OnAnswer {
		choices = slices.Delete(choices, 1, 2)
	}
	short := func(text string, n int) string { return termtext.Truncate(termtext.Line(text), n) }
	name := func(text string) string { return short(text, maxAskedName) }
	message := fmt.Sprintf("Goblin stopped %s", name(x.Request.Method()))
	if called := x.Target.Name; called != "" {
		message += fmt.Sprintf(" of %s", name(called))
	}
	if x.Server != "" {
		message += fmt.Sprintf(" at server %s", name(x.Server))
	}
	body, what := rawjson.Get(x.Params, "arguments"), "with the arguments"
	if e.On == rule.OnAnswer {
		body, what = x.Answer, "with the answer"
	}
	if body != nil {
		message += " " + what + " " + short(string(g.o.Mask(body, 4*maxAskedParams)), maxAskedParams)
	}
	params, err := json.Marshal(map[string]any{
		"message": message + ". Allow it?",
		"requestedSchema": map[string]any{
			"type": "object", "required": []string{"decision"},
			"properties": map[string]any{"decision": map[string]any{"type": "string", "title": "Decision", "enum": choices}},
		},
	})
	if err != nil || !g.o.CanAsk(x.Request, params) {
		return nil
	}
	return params
}

// errDecided is the reason for the client to close its question.
var errDecided = errors.New("the request no longer waits")

// askClient asks the client's user about a stopped request until stop is called. Any answer
// except consent denies it. Without an answer, UIs or the default decide.
func (g *Gate) askClient(x *Exchange, s *stop, params []byte) (stop func()) {
	ctx, cancel := context.WithCancelCause(x.Request.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, err := g.o.Ask(ctx, x.Request, params)
		if ctx.Err() != nil || isClosed(x.Request.Session().Stopping()) {
			return
		}
		if err != nil {
			g.o.Logger.Warn("client did not answer the question about a stopped request", "method", s.Method, "err", err)
			g.clientFailed(s)
			return
		}
		d := decision{byClient: true, Decision: registry.Decision{Action: registry.DecideDeny}}
		if rawjson.GetString(result, "action") == "accept" {
			switch rawjson.GetString(rawjson.Get(result, "content"), "decision") {
			case allowOnce:
				d.Action = registry.DecideSend
			case allowSession:
				d.Action, d.Remember = registry.DecideSend, registry.RememberSession
			}
		}
		err = g.submit(s.ID, d)
		if d.Remember != "" && err != nil { // a session without room for approvals
			d.Remember = ""
			_ = g.submit(s.ID, d) // it may have been decided
		}
	}()
	return func() {
		cancel(errDecided)
		<-done
	}
}
