package exchange

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/registry/termtext"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// hasErrorObject reports whether the response is an error object. The code of a cancelled
// request does not count, but its response may still be one.
func hasErrorObject(r *registry.TrafficRecord) bool {
	if r.Status != registry.StatusCancelled {
		return r.Code != 0
	}
	var e struct{ Code *int }
	return json.Unmarshal(r.Response, &e) == nil && e.Code != nil
}

// codeNames names the error codes of JSON-RPC 2.0 (5.1) and MCP.
var codeNames = map[int]string{
	-32700: "parse error", -32600: "invalid request", -32601: "method not found",
	-32602: "invalid params", -32603: "internal error", -32002: "resource not found",
	-32042: "URL elicitation required",
}

func failureText(r *registry.TrafficRecord) string {
	switch {
	case r.Status == registry.StatusToolError:
		return "tool error"
	case r.Code == 0:
		return "failed"
	}
	text := fmt.Sprintf("error %d", r.Code)
	if name := codeNames[r.Code]; name != "" {
		text += ", " + name
	}
	return text
}

// outcomeFields describes how a request ended.
func outcomeFields(r *registry.TrafficRecord) []viewer.Field {
	if recording.IsNotification(r) {
		return []viewer.Field{{Label: "status", Value: r.Status}}
	}
	status := viewer.Field{Label: "status", Value: recording.StatusText(r)}
	switch {
	case recording.IsFailure(r):
		status.Value = "! " + failureText(r)
	case recording.IsRootsRefusal(r):
		status.Value += " (the client has no roots)"
	}
	return []viewer.Field{
		status,
		{Label: "duration", Value: uicontext.FormatDuration(r.Duration - r.UserWait)},
		{Label: "waited", Value: waitText(r)},
		{Label: "response", Value: uicontext.FormatSize(r.Size)},
	}
}

func durationText(r *registry.TrafficRecord) string {
	text := uicontext.FormatDuration(r.Duration - r.UserWait)
	if r.UserWait > 0 {
		text += " + " + uicontext.FormatDuration(r.UserWait) + " waiting for the user"
	}
	return text
}

func waitText(r *registry.TrafficRecord) string {
	if r.UserWait == 0 {
		return ""
	}
	return uicontext.FormatDuration(r.UserWait) + " for the user"
}

// responseTitle is "Error" or "Response".
func responseTitle(r *registry.TrafficRecord) string {
	if hasErrorObject(r) {
		return "Error"
	}
	return "Response" // also if a tool reports an error in it
}

// bodyBlocks shows params, a result or an error, and reports missing parts: the journal
// stores only the beginning of large bodies, and evicts old ones.
func bodyBlocks(a *uicontext.Context, title string, data []byte, whole int) []viewer.Section {
	switch {
	case whole == 0 && len(data) == 0:
		return []viewer.Section{{Title: title, Kind: viewer.Note, Text: "empty"}}
	case len(data) == 0:
		return []viewer.Section{{Title: title, Kind: viewer.Note, Text: uicontext.FormatSize(int64(whole)) + ", " + a.MissingBody()}}
	case json.Valid(data):
		return []viewer.Section{{Title: title, Kind: viewer.JSON, Data: data}}
	}
	note := fmt.Sprintf("first %s of %s; the rest is not recorded", uicontext.FormatSize(int64(len(data))), uicontext.FormatSize(int64(whole)))
	return []viewer.Section{{Title: title, Kind: viewer.Note, Text: note}, {Kind: viewer.Text, Text: string(data)}}
}

// jsonRPC returns the exchange as JSON-RPC: a request and its response, if any. Without a
// stored id it uses the record's sequence number. lost names the missing parts.
func jsonRPC(r *registry.TrafficRecord, indent string) (request, response []byte, lost string) {
	id := copyID(r)
	if id == nil {
		id = json.RawMessage(strconv.FormatUint(r.Seq, 10))
	}
	req := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}{Version: "2.0", Method: r.Method}
	resp := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   json.RawMessage `json:"error,omitempty"`
	}{Version: "2.0", ID: id}
	if !recording.IsNotification(r) {
		req.ID = id
	}
	if json.Valid(r.Request) {
		req.Params = r.Request
	} else if r.RequestSize > 0 {
		lost = "the params"
	}
	request = encoded(req, indent)
	if recording.IsNotification(r) {
		return request, nil, lost
	}
	switch {
	case !json.Valid(r.Response):
		if lost != "" {
			lost += " and "
		}
		return request, nil, lost + "the response"
	case hasErrorObject(r):
		resp.Error = r.Response
	default:
		resp.Result = r.Response
	}
	return request, encoded(resp, indent), lost
}

func encoded(v any, indent string) []byte {
	text, _ := termtext.EncodeJSON(v, indent)
	return []byte(text)
}

// responseBlocks shows the content of a tool, resource or prompt result, with JSON and
// Markdown formatted. It returns nil for other methods, errors and truncated bodies.
func responseBlocks(r *registry.TrafficRecord) []viewer.Section {
	if hasErrorObject(r) || !json.Valid(r.Response) {
		return nil
	}
	switch r.Method {
	case "tools/call":
		return viewer.FromTool(r.Response)
	case "resources/read":
		return viewer.FromResource(r.Response)
	case "prompts/get":
		return viewer.FromPrompt(r.Response)
	}
	return nil
}

// ruleBlocks lists what rules did to the request.
func ruleBlocks(r *registry.TrafficRecord) []viewer.Section {
	if len(r.Events) == 0 {
		return nil
	}
	fields := make([]viewer.Field, len(r.Events))
	for i, e := range r.Events {
		fields[i] = viewer.Field{Label: fmt.Sprintf("rule %d", e.Rule), Value: clock(e.Time, millis) + "  " + e.Text}
	}
	return []viewer.Section{{Title: "Rules", Kind: viewer.Fields, Fields: fields}}
}

func originLine(r *registry.TrafficRecord, lk *theme.Theme) string {
	parts := []string{clock(r.Time, millis)}
	ends := []string{cmp.Or(r.Client, r.Session), r.Server}
	for i, end := range ends {
		if end == "" {
			continue
		}
		if i == 1 {
			parts = append(parts, arrow(lk, r.Direction))
		}
		parts = append(parts, uicontext.SanitizeLine(end))
	}
	parts = append(parts, uicontext.SanitizeLine(r.Method))
	if r.RequestSize > 0 {
		parts = append(parts, uicontext.FormatSize(int64(r.RequestSize)))
	}
	return strings.Join(parts, "  ")
}

// requestFacts describes the sides and the times of a request.
func requestFacts(lk *theme.Theme, reg *registry.Registry, r *registry.TrafficRecord) []viewer.Field {
	client, server := cmp.Or(r.Client, r.Session), cmp.Or(r.Server, registry.Local)
	direction := client + lk.Own(" → ") + server
	if r.Direction == registry.ToClient {
		direction = server + lk.Own(" → ") + client
	}
	f := []viewer.Field{
		{Label: "began", Value: FormatTime(r.Time)},
		{Label: "ended", Value: endText(r)},
		{Label: "client", Value: r.Client},
		{Label: "session", Value: SessionText(reg, r.Session)},
		{Label: "direction", Value: direction},
		{Label: "server", Value: r.Server},
		{Label: "method", Value: r.Method},
		{Label: "name", Value: r.Name},
		idField(r),
		{Label: "transport", Value: transportText(reg, r)},
	}
	if r.Receivers > 0 {
		f = append(f, viewer.Field{Label: "receivers", Value: termtext.Count(r.Receivers, "client")})
	}
	if r.RequestSize > 0 {
		f = append(f, viewer.Field{Label: "request", Value: uicontext.FormatSize(int64(r.RequestSize))})
	}
	return f
}

func endText(r *registry.TrafficRecord) string {
	if recording.IsNotification(r) || r.Status == registry.StatusInFlight || r.Time.IsZero() {
		return ""
	}
	return FormatTime(r.Time.Add(r.Duration))
}

// Text returns a record as JSON-RPC. lost names the missing parts.
func Text(reg *registry.Registry, seq uint64, indent string) (text, lost string, ok bool) {
	rec, ok := reg.Traffic().Record(seq)
	if !ok {
		return "", "", false
	}
	request, response, lost := jsonRPC(&rec, indent)
	text = string(request) + "\n"
	if response != nil {
		text += string(response) + "\n"
	}
	return text, lost, true
}
