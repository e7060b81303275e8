package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/mcpclient"
	"goblin/gateway/state"
	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// revision is the protocol revision that commands speak. The gateway waits for
// tools that run as tasks only, because it is one without tasks.
const revision = "2025-06-18"

// codeResourceNotFound is what servers say up to revision 2025-11-25.
const codeResourceNotFound = -32002

// request is one MCP request from the shell, about one named thing.
type request struct {
	kind   kind
	method string
	name   string // as it was typed
	server string // --server
	key    string // the member of params that holds the name
	rest   []byte // an object with the other members
	meta   []byte // --meta, an object, or nil
}

// target is the name to ask for. With --server it may be the server's own.
func (r *request) target() string {
	switch {
	case r.server == "" || r.kind.owns(r.server, r.name):
		return r.name
	case r.kind.noun == resourceKind.noun:
		return "mcp://" + r.server + "/" + r.name
	default:
		return r.server + "/" + r.name
	}
}

// params are the request's parameters, with everything the user typed as it
// was.
func (r *request) params() []byte {
	out := rawjson.SetMember(r.rest, r.key, rawjson.Quote(r.target()))
	if r.meta != nil {
		out = rawjson.SetMember(out, "_meta", r.meta)
	}
	return out
}

// own reports whether the request is about Goblin's own resources, which tell
// of all servers.
func (r *request) own() bool {
	return r.kind.noun == resourceKind.noun &&
		(r.server == registry.Local || r.kind.owns(registry.Local, r.name) || strings.HasPrefix(r.name, registry.Local+"://"))
}

// ask makes the request of the running daemon, or of a gateway in this process
// with as few servers as can answer it.
func (a *App) ask(ctx context.Context, r *request) (json.RawMessage, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, err
	}
	only := owners(cfg, r.kind, r.name)
	certain := len(only) == 1 && settled(only[0], r.name)
	switch {
	case r.own():
		only, certain = nil, false
	case r.server != "":
		only, certain = []string{r.server}, true
	}
	result, isDaemon, err := a.askOf(ctx, cfg, only, certain, r)
	if cli.ExitCode(err) == cli.CodeNotFound && !isDaemon && r.server != "" {
		// The others were not started, but a name may tell enough.
		for _, other := range owners(cfg, r.kind, r.name) {
			if other != r.server {
				err = cli.Fail(cli.CodeNotFound, "%w; by its name, it is of server %q", err, other)
				break
			}
		}
	}
	if cli.ExitCode(err) == cli.CodeNotFound && !isDaemon && only != nil && !certain {
		// The guess was wrong: the name belongs to a server whose name it
		// does not begin with.
		result, _, err = a.askOf(ctx, cfg, nil, false, r)
	}
	return result, interrupted(ctx, err)
}

// askOf asks the daemon, or the servers in only (nil: all). certain says that
// only one can know.
func (a *App) askOf(ctx context.Context, cfg *config.Config, only []string, certain bool, r *request) (result json.RawMessage, isDaemon bool, err error) {
	g, err := a.open(ctx, cfg, only)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	isDaemon = g.IsDaemon()
	if certain && !isDaemon {
		if err := usable(cfg, only[0]); err != nil {
			return nil, isDaemon, err
		}
	}
	conn, err := g.Connect(ctx, "")
	if err != nil {
		return nil, isDaemon, cli.Fail(cli.CodeConnect, "connect to the gateway: %w", err)
	}
	c, err := mcpclient.Open(ctx, conn, mcpclient.Options{
		Name: mcpclient.CommandName, Title: mcpclient.CommandTitle, Version: a.Version.Version, Revision: revision, Frame: cfg.Gateway.Limits.Frame,
		Alive: func(ctx context.Context) error {
			_, err := g.Status(ctx)
			return err
		},
	})
	if err != nil {
		return nil, isDaemon, lost(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	stop := a.waiting(ctx, g)
	defer stop()
	if r.own() && !isDaemon {
		// What is true of servers that are starting is of no use to anybody.
		if _, err := g.List(ctx, daemon.ListQuery{Kind: toolKind.list}); err != nil {
			return nil, isDaemon, err
		}
	}
	shown := false
	// Progress is always asked for, whether or not it is shown.
	tell := func(params json.RawMessage) {
		var p progress
		if a.ErrTTY && json.Unmarshal(params, &p) == nil {
			stop()
			a.showProgress(p)
			shown = true
		}
	}
	if rawjson.Get(r.meta, "progressToken") != nil {
		tell = nil // the user has one
	}
	result, err = c.Request(ctx, r.method, r.params(), tell)
	stop()
	if shown {
		fmt.Fprint(a.Err, clearLine)
	}
	if err != nil {
		err = a.explain(ctx, g, only, r, lost(err))
	}
	return result, isDaemon, err
}

// lost gives the loss of the gateway its exit code.
func lost(err error) error {
	switch {
	case errors.Is(err, mcpclient.ErrClosed):
		return cli.Fail(cli.CodeConnect, "the gateway ended before it answered")
	case errors.Is(err, mcpclient.ErrLost):
		return cli.Fail(cli.CodeConnect, "%w", err)
	}
	return err
}

// with does something with the running daemon, or with a gateway of our own, and tells a
// terminal what it waits for.
func (a *App) with(ctx context.Context, cfg *config.Config, only []string, do func(g Gateway) error) error {
	g, err := a.open(ctx, cfg, only)
	if err != nil {
		return err
	}
	stop := a.waiting(ctx, g)
	err = do(g)
	stop()
	return errors.Join(err, g.Close())
}

func (a *App) open(ctx context.Context, cfg *config.Config, only []string) (Gateway, error) {
	if a.profile != "" {
		return a.narrow(ctx, cfg, only)
	}
	return a.openWhole(ctx, cfg, only)
}

func (a *App) openWhole(ctx context.Context, cfg *config.Config, only []string) (Gateway, error) {
	if a.Open != nil {
		return a.Open(ctx, a, cfg, only)
	}
	return Open(ctx, a, cfg, only)
}

// progress is one notice of a server on a running request.
type progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"`
	Message  string  `json:"message"`
}

const clearLine = "\r\x1b[K"

// showProgress draws over the last line of the terminal at stderr.
func (a *App) showProgress(p progress) {
	var line strings.Builder
	switch {
	case p.Total > 0:
		fmt.Fprintf(&line, "%3.0f %%", 100*p.Progress/p.Total)
	default:
		fmt.Fprintf(&line, "%g", p.Progress)
	}
	if p.Message != "" {
		line.WriteString("  " + termtext.Line(termtext.FirstLine(p.Message)))
	}
	columns := a.Columns
	if columns == 0 {
		columns = 80
	}
	fmt.Fprint(a.Err, clearLine+termtext.Cut(a.Mask().String(line.String()), columns-1))
}

// explain turns an error of the gateway into one for the shell.
func (a *App) explain(ctx context.Context, g Gateway, only []string, r *request, err error) error {
	var failure *jsonrpc.Error
	if !errors.As(err, &failure) {
		return err
	}
	var data struct {
		Code       string   `json:"code"`
		Candidates []string `json:"candidates"`
	}
	_ = json.Unmarshal(failure.Data, &data) // absent, or a server's own
	what := fmt.Sprintf("%s %q", r.kind.noun, r.name)
	switch data.Code {
	case "CONNECTION_ERROR", "LOGIN_REQUIRED":
		return cli.Fail(cli.CodeConnect, "%s: %s", what, failure.Message)
	case "REQUEST_TIMEOUT":
		return cli.Fail(cli.CodeTimeout, "%s: %s", what, failure.Message)
	case "AMBIGUOUS":
		return cli.Fail(cli.CodeFailure, "%s fits several; use %s", what, strings.Join(data.Candidates, " or "))
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

// notFound tells which names are near, or that the server that would know is
// not there. The message is the server's own if it says so itself.
func (a *App) notFound(ctx context.Context, g Gateway, only []string, r *request, message string, itself bool) error {
	items, err := g.List(ctx, daemon.ListQuery{Kind: r.kind.list}) // first, as it waits for servers
	if err != nil {
		return err
	}
	status, err := g.Status(ctx)
	if err != nil {
		return err
	}
	var down, why []string
	for _, s := range status.Servers {
		if missing(s) && (only == nil || slices.Contains(only, s.Name)) {
			down, why = append(down, s.Name), append(why, stateOf(s))
		}
	}
	if len(only) > 0 && len(down) == len(only) {
		return cli.Fail(cli.CodeConnect, "%s %q: %s", r.kind.noun, r.name, strings.Join(why, "; "))
	}
	known := namesOf(status.Servers)
	if r.server != "" && r.server != registry.Local && !slices.Contains(known, r.server) {
		return cli.Fail(cli.CodeNotFound, "there is no server %q%s", r.server, cli.Meant(r.server, known, ""))
	}
	if _, why, ok := strings.Cut(message, fmt.Sprintf("unknown tool %q: ", r.name)); ok && strings.Contains(why, "withheld") {
		return cli.Fail(cli.CodeNotFound, "tool %q: %s", r.name, why)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "there is no %s %q", r.kind.noun, r.name)
	if reason, ok := strings.CutPrefix(message, "RESOURCE_NOT_FOUND: "); ok {
		reason, _, _ = strings.Cut(reason, ": ")
		if reason != "Resource not found" {
			fmt.Fprintf(&text, " (%s)", reason)
		}
	}
	if itself {
		fmt.Fprintf(&text, "; its server says: %s", message)
		if slices.Contains(names(items), r.name) {
			return cli.Fail(cli.CodeNotFound, "%s", text.String())
		}
	}
	elsewhere := ""
	if r.server != "" {
		fmt.Fprintf(&text, " of server %q", r.server)
		elsewhere = r.elsewhere(items)
		items = slices.DeleteFunc(items, func(it daemon.Entry) bool { return it.Server != r.server })
	}
	if len(down) > 0 {
		fmt.Fprintf(&text, "; not up: %s (see \"%s\")", strings.Join(down, ", "), a.Line("list servers"))
	}
	text.WriteString("; " + a.instead(r, status.Servers, items, elsewhere, message) + a.withheld(r, status.Servers))
	return cli.Fail(cli.CodeNotFound, "%s", text.String())
}

// instead says what to try instead of a name that is not there, of which the message is.
func (a *App) instead(r *request, servers []daemon.Server, items []daemon.Entry, elsewhere, message string) string {
	_, own, _ := strings.Cut(r.name, "/")
	owned := func(server string) bool { return own != "" && r.kind.owns(server, own) }
	if elsewhere != "" {
		return fmt.Sprintf("server %q has it", elsewhere)
	}
	if slices.Contains(names(items), own) || slices.ContainsFunc(namesOf(servers), owned) {
		return fmt.Sprintf("did you mean %q?", own)
	}
	if why := idle(servers, r); why != "" {
		return why
	}
	if hint, ok := strings.CutPrefix(message, fmt.Sprintf("unknown %s %q; ", r.kind.noun, r.name)); ok {
		return hint // which knows of renames
	}
	if near := cli.NearestOf(r.target(), names(items), each(items, (*daemon.Entry).Original)); len(near) > 0 {
		return fmt.Sprintf("did you mean %s?", cli.Quoted(near, " or "))
	}
	return fmt.Sprintf("\"%s\" shows all", a.Line("list", r.kind.list))
}

// idle tells why the server that the name is of is not asked; "" if there is none such.
func idle(servers []daemon.Server, r *request) string {
	for _, s := range servers {
		if (s.State == string(registry.StateDisabled) || waits(s)) && r.kind.owns(s.Name, r.name) {
			return stateOf(s)
		}
	}
	return ""
}

// withheld tells that the thing may be a tool that awaits approval; "" if not.
func (a *App) withheld(r *request, servers []daemon.Server) string {
	if r.kind.noun != toolKind.noun {
		return ""
	}
	may := slices.DeleteFunc(slices.Clone(servers), func(s daemon.Server) bool { return !r.kind.owns(s.Name, r.name) })
	if len(may) == 0 { // the name alone does not tell whose it is
		may = servers
	}
	if held := a.withholding(may, r.server); held != "" {
		return "; " + held
	}
	return ""
}

// elsewhere is another server than the one that was asked, which has the thing.
func (r *request) elsewhere(items []daemon.Entry) string {
	for _, it := range items {
		if it.Server != r.server && slices.Contains([]string{it.Listed(), it.Original(), it.FlatID}, r.name) {
			return it.Server
		}
	}
	return ""
}

// missingArguments are the arguments that a prompt requires and that were not
// given, as they are typed.
func (a *App) missingArguments(ctx context.Context, g Gateway, r *request) (missing []string) {
	if r.kind.noun != promptKind.noun {
		return nil
	}
	items, err := g.List(ctx, daemon.ListQuery{Kind: r.kind.list, Server: r.server})
	if err != nil {
		return nil // the server's own words must do
	}
	i := slices.IndexFunc(items, func(it daemon.Entry) bool {
		return slices.Contains([]string{it.Name, it.Server + "/" + it.OriginalName, it.Server + "_" + it.OriginalName, it.OriginalName}, r.name)
	})
	if i < 0 {
		return nil
	}
	var prompt struct {
		Arguments []struct {
			Name     string `json:"name"`
			Required bool   `json:"required"`
		} `json:"arguments"`
	}
	_ = json.Unmarshal(items[i].Definition, &prompt) // an odd one names none
	given := rawjson.Get(r.rest, "arguments")
	for _, arg := range prompt.Arguments {
		if arg.Required && rawjson.Get(given, arg.Name) == nil {
			missing = append(missing, "--arg "+arg.Name+"=…")
		}
	}
	return missing
}

// missing reports whether what a server offers is not known although it should be. What
// is remembered of one that starts is.
func missing(s daemon.Server) bool {
	starts := s.State == string(registry.StateConnecting) && s.Error == ""
	return unready(s.State) && (!starts || s.Remembered.IsZero())
}

// waits reports whether a server starts with the first client that has a project.
func waits(s daemon.Server) bool { return s.State == string(registry.StateStopped) && s.Error != "" }

// unready reports whether a server in that state cannot be asked although it
// should be there.
func unready(state string) bool {
	switch registry.State(state) {
	case registry.StateReady, registry.StateSleeping, registry.StateDisabled, registry.StateStopped, "":
		return false
	}
	return true
}

// stateOf tells why a server is missing.
func stateOf(s daemon.Server) string {
	verb := ""
	switch registry.State(s.State) {
	case registry.StateFailed, registry.StateNeedsLogin:
	default:
		verb = "is "
	}
	return fmt.Sprintf("server %q %s%s%s", s.Name, verb, s.State, because(s.Error))
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func names(items []daemon.Entry) []string { return each(items, (*daemon.Entry).Listed) }

// maxObject is the longest JSON object that is read, in bytes. Frames have the same default.
const maxObject = 128 << 20

// object reads a JSON object from the command line: as it stands, @file, or -
// for stdin.
func (a *App) object(flag, text string) ([]byte, error) {
	raw, err := []byte(text), error(nil)
	switch {
	case text == "":
		return nil, nil
	case text == "-":
		raw, err = io.ReadAll(io.LimitReader(a.In, maxObject))
	case strings.HasPrefix(text, "@"):
		raw, err = state.ReadNamed(text[1:], maxObject)
	}
	if err != nil {
		return nil, cli.Fail(cli.CodeUsage, "%s: cannot read %s", flag, reason(err))
	}
	if err := rawjson.Valid(raw); err != nil {
		return nil, cli.Fail(cli.CodeUsage, `%s takes a JSON object such as '{"name": "value"}', or @FILE, or - for stdin: %w`, flag, err)
	}
	if !rawjson.IsObject(raw) {
		return nil, cli.Fail(cli.CodeUsage, `%s must be a JSON object such as '{"name": "value"}', not %s`, flag, jsonType(raw))
	}
	return rawjson.OneLine(raw), nil
}

// reason is why a file cannot be read, with its name in front.
func reason(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Sprintf("%s: %v", failed.Path, failed.Err)
	}
	return err.Error()
}

// jsonType names the type of a JSON value that is no object.
func jsonType(raw []byte) string {
	var v any
	_ = json.Unmarshal(raw, &v) // it is valid
	switch v.(type) {
	case []any:
		return "an array"
	case string:
		return "a string"
	case float64:
		return "a number"
	case bool:
		return "true or false"
	}
	return "null"
}
