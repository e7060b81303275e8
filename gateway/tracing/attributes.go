package tracing

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/registry/rawjson"
)

// Attribute names of the conventions.
const (
	methodName      = attribute.Key("mcp.method.name")
	sessionID       = attribute.Key("mcp.session.id")
	protocolVersion = attribute.Key("mcp.protocol.version")
	resourceURI     = attribute.Key("mcp.resource.uri")
	requestID       = attribute.Key("jsonrpc.request.id")
	statusCodeKey   = attribute.Key("rpc.response.status_code")
	errorType       = attribute.Key("error.type")
	toolName        = attribute.Key("gen_ai.tool.name")
	promptName      = attribute.Key("gen_ai.prompt.name")
	operationName   = attribute.Key("gen_ai.operation.name")
	transport       = attribute.Key("network.transport")
	networkProtocol = attribute.Key("network.protocol.name")
	networkVersion  = attribute.Key("network.protocol.version")
	serverAddress   = attribute.Key("server.address")
	serverPort      = attribute.Key("server.port")
	clientAddress   = attribute.Key("client.address")
	clientPort      = attribute.Key("client.port")
)

// Attribute names of Goblin.
const (
	serverName   = attribute.Key("goblin.server")
	clientName   = attribute.Key("goblin.client")
	profileName  = attribute.Key("goblin.profile")
	callNumber   = attribute.Key("goblin.request.number")
	originalName = attribute.Key("goblin.original_name")
	goblinCode   = attribute.Key("goblin.error.code")
	startWait    = attribute.Key("goblin.wait.start")
	queueWait    = attribute.Key("goblin.wait.queue")
	userWait     = attribute.Key("goblin.wait.user")
	requestSize  = attribute.Key("goblin.request.size")
	responseSize = attribute.Key("goblin.response.size")
	receivers    = attribute.Key("goblin.receivers")
	ruleSteps    = attribute.Key("goblin.rules")
)

// Values of error.type that are no error code.
const (
	toolError    = "tool_error"
	cancelled    = "cancelled"
	disconnected = "client_disconnected"
	otherError   = "_OTHER"
)

const (
	maxText = 256  // bytes of a name or message
	maxURI  = 1024 // bytes
)

// cut returns a name or message with at most limit bytes and without control characters.
func cut(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit] + "…"
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
}

// plainURI returns a URI without its query, its fragment and the users in its authorities.
// All three may hold secrets. A listed URI contains the server's own one.
func plainURI(uri string) string {
	if end := strings.IndexAny(uri, "?#"); end >= 0 {
		uri = uri[:end]
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(uri, "://")
		out.WriteString(before)
		if !found {
			return cut(out.String(), maxURI)
		}
		out.WriteString("://")
		authority, _, _ := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			rest = rest[at+1:]
		}
		uri = rest
	}
}

// targetAttributes returns the span name and the attributes for the target of a request.
// name is masked. params may be nil.
func targetAttributes(method, name string, params []byte) (span string, all []attribute.KeyValue) {
	method = cut(method, maxText)
	all = append(make([]attribute.KeyValue, 0, 16), methodName.String(method))
	tool, prompt := "", ""
	switch method {
	case "tools/call":
		tool = cut(name, maxText)
		all = append(all, operationName.String("execute_tool"))
	case "prompts/get":
		prompt = cut(name, maxText)
	case "completion/complete":
		if kind := rawjson.Path(params, "ref", "type"); string(kind) == `"ref/prompt"` {
			prompt = cut(name, maxText)
		}
	case "resources/read", "resources/subscribe", "resources/unsubscribe", "notifications/resources/updated", "resources/directory/read":
		if name != "" {
			all = append(all, resourceURI.String(plainURI(name)))
		}
	}
	switch {
	case tool != "":
		return method + " " + tool, append(all, toolName.String(tool))
	case prompt != "":
		return method + " " + prompt, append(all, promptName.String(prompt))
	}
	return method, all
}

// clientAttributes describes the client's side of a request.
func clientAttributes(x *downstream.Request) []attribute.KeyValue {
	all := sessionAttributes(x.Session())
	if id := idText(x.ID()); id != "" {
		all = append(all, requestID.String(id))
	}
	if m := x.Modern(); m != nil {
		all = append(all, protocolVersion.String(cut(m.Version, maxText)))
	} else if v := x.Session().Protocol(); v != "" {
		all = append(all, protocolVersion.String(v))
	}
	r, _, _ := x.HTTP(0)
	if r == nil {
		return all
	}
	all = append(all, networkProtocol.String("http"), networkVersion.String(httpVersion(r.Proto)))
	if host, port, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		all = append(all, clientAddress.String(host))
		if n, err := strconv.Atoi(port); err == nil {
			all = append(all, clientPort.Int(n))
		}
	}
	return all
}

func sessionAttributes(s *downstream.Session) []attribute.KeyValue {
	var all []attribute.KeyValue
	if !s.Stateless() {
		all = append(all, sessionID.String(s.ID()))
	}
	switch s.Transport() {
	case "http":
		return append(all, transport.String("tcp"))
	case downstream.SocketTransport, downstream.ScreenTransport:
		return append(all, transport.String("unix"))
	}
	return append(all, transport.String("pipe"))
}

func idText(id []byte) string {
	if text, ok := rawjson.String(id); ok {
		return cut(text, maxText)
	}
	if string(id) == "null" {
		return ""
	}
	return cut(string(id), maxText)
}

func httpVersion(proto string) string {
	return strings.TrimSuffix(strings.TrimPrefix(proto, "HTTP/"), ".0")
}

// serverAttributes describes the connection to a server.
func serverAttributes(s *config.Server, protocol string) []attribute.KeyValue {
	all := []attribute.KeyValue{serverName.String(s.Name)}
	if protocol != "" {
		all = append(all, protocolVersion.String(cut(protocol, maxText)))
	}
	if s.URL == "" {
		return append(all, transport.String("pipe"))
	}
	all = append(all, transport.String("tcp"), networkProtocol.String("http"))
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" {
		return all
	}
	port := map[string]int{"http": 80, "https": 443}[u.Scheme]
	if n, err := strconv.Atoi(u.Port()); err == nil {
		port = n
	}
	return append(all, serverAddress.String(u.Hostname()), serverPort.Int(port))
}

// answerAttributes describes the HTTP answer of a server, if there is one.
func answerAttributes(answer *http.Response) []attribute.KeyValue {
	if answer == nil {
		return nil
	}
	return []attribute.KeyValue{networkVersion.String(httpVersion(answer.Proto))}
}

func seconds(key attribute.Key, d time.Duration) attribute.KeyValue {
	return key.Float64(d.Seconds())
}
