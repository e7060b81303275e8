package downstream

import (
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// ModernProtocols lists the revisions without handshake and session (2026-07-28,
// basic/index#statelessness).
var ModernProtocols = []string{"2026-07-28"}

// MetaPrefix is the prefix of the protocol's members in _meta.
const MetaPrefix = "io.modelcontextprotocol/"

const (
	metaProtocol     = MetaPrefix + "protocolVersion"
	metaCapabilities = MetaPrefix + "clientCapabilities"
	metaClient       = MetaPrefix + "clientInfo"
	metaLogLevel     = MetaPrefix + "logLevel"
)

// Error codes that 2026-07-28 reserves for the protocol.
const (
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
)

// Modern is the envelope of a stateless request.
type Modern struct {
	Version      string
	Capabilities []byte // raw object
	LogLevel     string // "" if the client wants no log messages
	// Header is set for HTTP only.
	Header http.Header
	// Remote is the client's address and port for HTTP, otherwise "".
	Remote string
	client []byte // raw, may be nil
}

// Client returns the client's description with this request's capabilities.
func (m *Modern) Client() ClientInfo {
	c := clientInfo(m.client)
	c.Capabilities = m.Capabilities
	return c
}

func (m *Modern) name() string {
	if !rawjson.IsObject(m.client) {
		return ""
	}
	return shortString(rawjson.Get(m.client, "name"))
}

// isModernRequest reports whether a request is stateless by its _meta or, without a
// session, by its method.
func isModernRequest(m *jsonrpc.Message, session bool) bool {
	for k := range rawjson.Members(rawjson.Get(m.Params, "_meta")) {
		if k.Is(metaProtocol) || k.Is(metaCapabilities) {
			return true
		}
	}
	return !session && (m.Method == "server/discover" || m.Method == "subscriptions/listen")
}

// statelessRequest returns the valid envelope of a stateless request, or nil.
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

// readModern does not check the revision.
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

func unsupportedVersionError(version string) *jsonrpc.Error {
	if slices.Contains(ModernProtocols, version) {
		return nil
	}
	e := jsonrpc.Errorf(CodeUnsupportedVersion, "Unsupported protocol version: %s", truncate(version))
	if slices.Contains(DefaultProtocols, version) {
		e.Message += " needs a session; send initialize first"
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

func headersNameModern(head http.Header) bool {
	return slices.ContainsFunc(head.Values(headerProtocol), func(v string) bool { return slices.Contains(ModernProtocols, v) })
}

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
		return nil // the handler reports the error
	}
	return checkHeader(head, headerName, name)
}

// checkHeader requires a header exactly once with the value in the body.
func checkHeader(head http.Header, name, want string) *jsonrpc.Error {
	values := head.Values(name)
	if len(values) != 1 {
		return jsonrpc.Errorf(CodeHeaderMismatch, "Header mismatch: %s must occur once, with the value from the body", name)
	}
	value, ok := mcp.DecodeHeaderValue(values[0])
	if !ok {
		return jsonrpc.Errorf(CodeHeaderMismatch, "Header mismatch: %s is not valid base64", name)
	}
	if value != want {
		return jsonrpc.Errorf(CodeHeaderMismatch, "Header mismatch: %s is %q, the body has %q", name, truncate(value), truncate(want))
	}
	return nil
}

func statusOf(code int) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case CodeHeaderMismatch, CodeMissingCapability, CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
