package downstream

import (
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// ModernProtocols are the revisions served without handshake and session: a
// request names its revision in _meta (2026-07-28, basic/index#statelessness).
var ModernProtocols = []string{"2026-07-28"}

// MetaPrefix begins the members of _meta that the protocol keeps for itself.
const MetaPrefix = "io.modelcontextprotocol/"

// The members of a request's _meta that the protocol reads.
const (
	metaProtocol     = MetaPrefix + "protocolVersion"
	metaCapabilities = MetaPrefix + "clientCapabilities"
	metaClient       = MetaPrefix + "clientInfo"
	metaLogLevel     = MetaPrefix + "logLevel"
)

// Codes of the errors that 2026-07-28 reserves for the protocol itself.
const (
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
)

// Modern is the envelope of a stateless request: the _meta in which it describes itself.
type Modern struct {
	Version      string
	Capabilities []byte // raw object
	LogLevel     string // "" when the client wants no log messages
	// Header holds the headers of an HTTP request; nil on other transports.
	Header http.Header
	// Remote is the address and port of an HTTP request, "" on other transports.
	Remote string
	client []byte // raw, nil when absent
}

// Client returns the client's description of itself; the capabilities are the request's.
func (m *Modern) Client() ClientInfo {
	c := clientInfo(m.client)
	c.Capabilities = m.Capabilities
	return c
}

// name is that of Client.
func (m *Modern) name() string {
	if !rawjson.IsObject(m.client) {
		return ""
	}
	return shortString(rawjson.Get(m.client, "name"))
}

// isModernRequest reports whether a request is meant to be stateless: by what its
// _meta holds, or, where there is no session that it could belong to, by a
// method that only stateless revisions have.
func isModernRequest(m *jsonrpc.Message, session bool) bool {
	for k := range rawjson.Members(rawjson.Get(m.Params, "_meta")) {
		if k.Is(metaProtocol) || k.Is(metaCapabilities) {
			return true
		}
	}
	return !session && (m.Method == "server/discover" || m.Method == "subscriptions/listen")
}

// statelessRequest reads and checks what a stateless request says of itself;
// nil for one of a session.
func (s *Session) statelessRequest(m *jsonrpc.Message) (*Modern, *jsonrpc.Error) {
	if !isModernRequest(m, s.Protocol() != "") {
		return nil, nil
	}
	out, fault := readModern(rawjson.Get(m.Params, "_meta"))
	if fault == nil {
		fault = unsupportedVersionError(out.Version)
	}
	if fault != nil {
		return nil, fault
	}
	return out, nil
}

// readModern reads the members of _meta; it does not check the revision.
func readModern(meta []byte) (*Modern, *jsonrpc.Error) {
	out := &Modern{}
	var version, level []byte
	for k, v := range rawjson.Members(meta) {
		switch {
		case k.Is(metaProtocol):
			version = v
		case k.Is(metaCapabilities):
			out.Capabilities = v
		case k.Is(metaClient):
			out.client = v
		case k.Is(metaLogLevel):
			level = v
		}
	}
	var ok bool
	if out.Version, ok = rawjson.String(version); !ok {
		return nil, hasNoMember(metaProtocol, "a string")
	}
	if !rawjson.IsObject(out.Capabilities) {
		return nil, hasNoMember(metaCapabilities, "an object")
	}
	if level != nil && string(level) != "null" {
		if out.LogLevel, ok = rawjson.String(level); !ok || out.LogLevel == "" {
			return nil, hasNoMember(metaLogLevel, "the name of a level")
		}
	}
	return out, nil
}

func hasNoMember(member, kind string) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, `Invalid params: member "_meta" needs %q to be %s`, member, kind)
}

// unsupportedVersionError returns the error for a revision that needs a handshake or is
// unknown, or nil.
func unsupportedVersionError(version string) *jsonrpc.Error {
	if slices.Contains(ModernProtocols, version) {
		return nil
	}
	e := jsonrpc.Errorf(CodeUnsupportedVersion, "Unsupported protocol version: %s", truncate(version))
	if slices.Contains(DefaultProtocols, version) {
		e.Message += " is served to sessions only; begin with initialize"
	}
	supported := rawjson.Strings(slices.Concat(ModernProtocols, DefaultProtocols))
	e.Data = rawjson.SetMember(rawjson.SetMember([]byte("{}"), "supported", supported), "requested", rawjson.Quote(version))
	return e
}

// Headers of stateless requests (2026-07-28, basic/transports, SEP-2243).
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
)

// headersNameModern reports whether the headers name a revision without sessions.
func headersNameModern(head http.Header) bool {
	return slices.ContainsFunc(head.Values(headerProtocol), func(v string) bool { return slices.Contains(ModernProtocols, v) })
}

// checkHeaders compares what headers repeat of a request with the request.
func checkHeaders(head http.Header, m *jsonrpc.Message, version string) *jsonrpc.Error {
	if fault := checkHeader(head, headerProtocol, version); fault != nil {
		return fault
	}
	if fault := checkHeader(head, headerMethod, m.Method); fault != nil {
		return fault
	}
	member := ""
	switch m.Method {
	case "tools/call", "prompts/get":
		member = "name"
	case "resources/read":
		member = "uri"
	case "tasks/get", "tasks/update", "tasks/cancel": // SEP-2663
		member = "taskId"
	default:
		return nil
	}
	name, ok := rawjson.String(rawjson.Get(m.Params, member))
	if !ok {
		return nil // the handler says what is wrong with it
	}
	return checkHeader(head, headerName, name)
}

// checkHeader checks that a header is there once and has the value of the body.
func checkHeader(head http.Header, name, want string) *jsonrpc.Error {
	values := head.Values(name)
	if len(values) != 1 {
		return jsonrpc.Errorf(CodeHeaderMismatch, "Header mismatch: %s must be given once, with the value of the body", name)
	}
	value, ok := mcp.DecodeHeaderValue(values[0])
	if !ok {
		return jsonrpc.Errorf(CodeHeaderMismatch, "Header mismatch: %s is not valid base64", name)
	}
	if value != want {
		return jsonrpc.Errorf(CodeHeaderMismatch, "Header mismatch: %s is %q, the body says %q", name, truncate(value), truncate(want))
	}
	return nil
}

// statusOf is the HTTP status that an error of a stateless request has.
func statusOf(code int) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case CodeHeaderMismatch, CodeMissingCapability, CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
