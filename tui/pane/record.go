package pane

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/registry/termtext"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

const runningText = recording.RunningText

func isNotification(r *registry.TrafficRecord) bool { return recording.IsNotification(r) }

func isRootsRefusal(r *registry.TrafficRecord) bool { return recording.IsRootsRefusal(r) }

// IsFailure reports whether a request failed.
func IsFailure(r *registry.TrafficRecord) bool { return recording.IsFailure(r) }

// hasErrorObject reports whether the response is an error object. The code of a cancelled
// request does not count, but its response may still be one.
func hasErrorObject(r *registry.TrafficRecord) bool {
	if r.Status != registry.StatusCancelled {
		return r.Code != 0
	}
	var e struct{ Code *int }
	return json.Unmarshal(r.Response, &e) == nil && e.Code != nil
}

func statusText(r *registry.TrafficRecord) string { return recording.StatusText(r) }

func markedStatusText(r *registry.TrafficRecord) string {
	switch {
	case r.Status == registry.StatusInFlight:
		return "~ " + runningText // as wide as the spinner
	case IsFailure(r):
		return "!" + statusText(r)
	}
	return statusText(r)
}

func nameAtServer(r *registry.TrafficRecord) string {
	if own, ok := strings.CutPrefix(r.Name, "mcp://"+r.Server+"/"); ok && r.Server != "" {
		return own
	}
	return r.Name
}

func recordSize(r *registry.TrafficRecord) int64 { return recording.Size(r) }

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

func outcomeFields(r *registry.TrafficRecord) []viewer.Field {
	if isNotification(r) {
		return []viewer.Field{{Label: "status", Value: r.Status}}
	}
	status := viewer.Field{Label: "status", Value: statusText(r)}
	switch {
	case IsFailure(r):
		status.Value = "! " + failureText(r)
	case isRootsRefusal(r):
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

func responseTitle(r *registry.TrafficRecord) string {
	if hasErrorObject(r) {
		return "Error"
	}
	return "Response" // also if a tool reports an error in it
}

// bodyBlocks shows params, a result or an error, and reports missing parts: the journal
// stores only the beginning of large bodies, and evicts old ones.
func (a *Layout) bodyBlocks(title string, data []byte, whole int) []viewer.Section {
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
	if !isNotification(r) {
		req.ID = id
	}
	if json.Valid(r.Request) {
		req.Params = r.Request
	} else if r.RequestSize > 0 {
		lost = "the params"
	}
	request = encoded(req, indent)
	if isNotification(r) {
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

// callArguments returns the arguments of a recorded call of a tool or prompt, or false if
// they were truncated.
func callArguments(r *registry.TrafficRecord) (args json.RawMessage, ok bool) {
	var p struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	if len(r.Request) == 0 || json.Unmarshal(r.Request, &p) != nil {
		return nil, false
	}
	return p.Arguments, true
}

func logTailBlocks(tail []registry.LogRecord) []viewer.Section {
	if len(tail) == 0 {
		return nil
	}
	var b strings.Builder
	for i, r := range tail {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(r.Time.Format("15:04:05") + " ")
		if r.Source == registry.SourceMessage {
			b.WriteString(strings.ToLower(r.Level.String()) + " ")
		}
		b.WriteString(uicontext.CutText(strings.TrimRight(uicontext.SanitizeLine(r.Text), " "), 2000))
	}
	return []viewer.Section{{Title: "Last lines of stderr and messages", Kind: viewer.Text, Text: b.String()}}
}
