package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

// codeResourceNotFound is the error code of servers up to revision 2025-11-25.
const codeResourceNotFound = -32002

func (a *App) explain(ctx context.Context, g Gateway, only []string, r *request, err error) error {
	var failure *jsonrpc.Error
	if !errors.As(err, &failure) {
		return err
	}
	var data struct {
		Code       string   `json:"code"`
		Candidates []string `json:"candidates"`
	}
	_ = json.Unmarshal(failure.Data, &data) // missing or the server's own data is fine
	what := fmt.Sprintf("%s %q", r.kind.noun, r.name)
	switch data.Code {
	case "CONNECTION_ERROR", "LOGIN_REQUIRED":
		return cli.Fail(cli.CodeConnect, "%s: %s", what, failure.Message)
	case "REQUEST_TIMEOUT":
		return cli.Fail(cli.CodeTimeout, "%s: %s", what, failure.Message)
	case "AMBIGUOUS":
		return cli.Fail(cli.CodeFailure, "%s is ambiguous; use %s", what, strings.Join(data.Candidates, " or "))
	case "TOOL_NOT_FOUND", "PROMPT_NOT_FOUND", "RESOURCE_NOT_FOUND":
	default:
		if failure.Code != codeResourceNotFound {
			if missing := a.missingArguments(ctx, g, r); len(missing) > 0 {
				return cli.Fail(cli.CodeUsage, "%s needs %s", what, strings.Join(missing, " "))
			}
			return cli.Fail(cli.CodeFailure, "%s: %s", what, failure.Message)
		}
	}
	return a.notFound(ctx, g, only, r, failure.Message, data.Code == "")
}

// notFound returns an error with similar names, or with the servers that don't answer. If
// fromServer is set, message is the server's.
func (a *App) notFound(ctx context.Context, g Gateway, only []string, r *request, message string, fromServer bool) error {
	items, err := g.List(ctx, daemon.ListQuery{Kind: r.kind.list}) // first, because it waits for servers
	if err != nil {
		return err
	}
	status, err := g.Status(ctx)
	if err != nil {
		return err
	}
	var down, why []string
	for _, s := range status.Servers {
		if lacksEntries(s) && (only == nil || slices.Contains(only, s.Name)) {
			down, why = append(down, s.Name), append(why, stateText(s))
		}
	}
	if len(only) > 0 && len(down) == len(only) {
		return cli.Fail(cli.CodeConnect, "%s %q: %s", r.kind.noun, r.name, strings.Join(why, "; "))
	}
	known := statusNames(status.Servers)
	if r.server != "" && r.server != registry.Local && !slices.Contains(known, r.server) {
		return cli.Fail(cli.CodeNotFound, "no server %q%s", r.server, cli.Suggest(r.server, known, ""))
	}
	if _, why, ok := strings.Cut(message, fmt.Sprintf("unknown %s %q: ", r.kind.noun, r.name)); ok {
		return cli.Fail(cli.CodeNotFound, "%s %q: %s", r.kind.noun, r.name, why)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "no %s %q", r.kind.noun, r.name)
	if reason, ok := strings.CutPrefix(message, "RESOURCE_NOT_FOUND: "); ok {
		reason, _, _ = strings.Cut(reason, ": ")
		if reason != "Resource not found" {
			fmt.Fprintf(&text, " (%s)", reason)
		}
	}
	if fromServer {
		fmt.Fprintf(&text, "; server error: %s", message)
		if slices.Contains(listedNames(items), r.name) {
			return cli.Fail(cli.CodeNotFound, "%s", text.String())
		}
	}
	elsewhere := ""
	if r.server != "" {
		fmt.Fprintf(&text, " in server %q", r.server)
		elsewhere = r.otherOwner(items)
		items = slices.DeleteFunc(items, func(it daemon.Entry) bool { return it.Server != r.server })
	}
	if len(down) > 0 {
		fmt.Fprintf(&text, "; not ready: %s (see \"%s\")", strings.Join(down, ", "), a.CommandLine("list servers"))
	}
	text.WriteString("; " + a.hint(r, status.Servers, items, elsewhere, message) + a.withheldHint(r, status.Servers))
	return cli.Fail(cli.CodeNotFound, "%s", text.String())
}

// hint suggests a replacement for an unknown name. message is the gateway's.
func (a *App) hint(r *request, servers []daemon.Server, items []daemon.Entry, elsewhere, message string) string {
	_, own, _ := strings.Cut(r.name, "/")
	owned := func(server string) bool { return own != "" && r.kind.owns(server, own) }
	if elsewhere != "" {
		return fmt.Sprintf("server %q has it", elsewhere)
	}
	if slices.Contains(listedNames(items), own) || slices.ContainsFunc(statusNames(servers), owned) {
		return fmt.Sprintf("did you mean %q?", own)
	}
	if why := idleReason(servers, r); why != "" {
		return why
	}
	if hint, ok := strings.CutPrefix(message, fmt.Sprintf("unknown %s %q; ", r.kind.noun, r.name)); ok {
		return hint // it considers renames
	}
	if near := cli.NearestSpelling(r.target(), listedNames(items), each(items, (*daemon.Entry).OriginalLabel)); len(near) > 0 {
		return fmt.Sprintf("did you mean %s?", cli.QuoteNames(near, " or "))
	}
	return fmt.Sprintf("list all with \"%s\"", a.CommandLine("list", r.kind.list))
}

func idleReason(servers []daemon.Server, r *request) string {
	for _, s := range servers {
		if (s.State == string(registry.StateDisabled) || waitsForProject(s)) && r.kind.owns(s.Name, r.name) {
			return stateText(s)
		}
	}
	return ""
}

func (a *App) withheldHint(r *request, servers []daemon.Server) string {
	if r.kind.noun != toolKind.noun {
		return ""
	}
	may := slices.DeleteFunc(slices.Clone(servers), func(s daemon.Server) bool { return !r.kind.owns(s.Name, r.name) })
	if len(may) == 0 { // the name suggests no server
		may = servers
	}
	if held := a.withheldNote(may, r.server); held != "" {
		return "; " + held
	}
	return ""
}

func (r *request) otherOwner(items []daemon.Entry) string {
	for _, it := range items {
		if it.Server != r.server && it.MatchName(r.name) > 0 {
			return it.Server
		}
	}
	return ""
}

func (a *App) missingArguments(ctx context.Context, g Gateway, r *request) (missing []string) {
	if r.kind.noun != promptKind.noun {
		return nil
	}
	items, err := g.List(ctx, daemon.ListQuery{Kind: r.kind.list, Server: r.server})
	if err != nil {
		return nil // the server's message must do
	}
	i := slices.IndexFunc(items, func(it daemon.Entry) bool { return it.MatchName(r.name) > 0 })
	if i < 0 {
		return nil
	}
	given := rawjson.Get(r.rest, "arguments")
	for _, arg := range definition.PromptFields(items[i].Definition) {
		if arg.Required && rawjson.Get(given, arg.Name) == nil {
			missing = append(missing, "--arg "+arg.Name+"=…")
		}
	}
	return missing
}

// requestCode returns the exit code of a failed request.
func requestCode(err error) int {
	var failure *jsonrpc.Error
	if !errors.As(err, &failure) {
		return cli.CodeConnect
	}
	switch code := rawjson.GetString(failure.Data, "code"); {
	case code == "CONNECTION_ERROR", code == "LOGIN_REQUIRED":
		return cli.CodeConnect
	case code == "REQUEST_TIMEOUT":
		return cli.CodeTimeout
	case strings.HasSuffix(code, "_NOT_FOUND"), failure.Code == codeResourceNotFound:
		return cli.CodeNotFound
	}
	return cli.CodeFailure
}
