package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// Handshake of commands and snippets. Without capabilities, servers send no requests that
// nothing would answer.
const (
	handshakeVersion = "2025-11-25"
	initialize       = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + handshakeVersion + `","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}`
	initialized      = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// maxSessions is the maximum number of sessions in a script. The requests of further ones
// use the last.
const maxSessions = 1000

const scriptHead = `#!/bin/sh
# The client requests of a recording, for an MCP server with Streamable HTTP.
# Written by Goblin %s.
#
#   sh SCRIPT [URL]    MCP_TOKEN in the environment is sent as bearer token.
set -eu
url=${1:-%s}
headers=$(mktemp)
trap 'rm -f "$headers"' EXIT
set -- -sS -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'
[ -z "${MCP_TOKEN:-}" ] || set -- "$@" -H "Authorization: Bearer $MCP_TOKEN"
`

const scriptSession = `
# %s
curl "$@" -D "$headers" -o /dev/null "$url" --data-binary @- <<'EOF'
` + initialize + `
EOF
session_%[2]d=$(tr -d '\r' <"$headers" | awk 'tolower($1) == "mcp-session-id:" { print $2 }')
curl "$@" -H 'MCP-Protocol-Version: ` + handshakeVersion + `' -H "Mcp-Session-Id: $session_%[2]d" "$url" --data-binary @- <<'EOF'
` + initialized + `
EOF
`

const scriptRequest = `
# %s
curl "$@" -H 'MCP-Protocol-Version: ` + handshakeVersion + `' -H "Mcp-Session-Id: $session_%d" "$url" --data-binary @- <<'EOF'
%s
EOF
echo
`

// writeCurl writes a script with one curl per request of a client. Bodies are quoted here
// documents: the shell expands nothing in them.
func writeCurl(k *walker, w io.Writer) error {
	endpoint, err := cleanURL(cmp.Or(k.options.URL, DefaultURL))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, scriptHead, comment(cmp.Or(k.options.Version, "unknown")), endpoint)
	sessions := map[string]int{}
	return k.each(func(e *exchange) error {
		if e.toClient() || e.isNotification() || isHandshake(e.Method) {
			return nil
		}
		if e.params == nil && e.RequestSize > len("{}") || e.paramsCut {
			k.sum.Skipped++
			_, err := fmt.Fprintf(w, "\n# %s: skipped, because its params are not recorded\n", comment(e.Method+" "+e.Name))
			return err
		}
		n := sessions[e.Session]
		if n == 0 {
			n = len(sessions) + 1
			if n <= maxSessions {
				sessions[e.Session] = n
				fmt.Fprintf(w, scriptSession, comment("session "+cmp.Or(e.Session, "without id")+" of "+cmp.Or(e.Client, "a client")), n)
			}
			n = min(n, maxSessions)
		}
		body := encode(struct {
			Version string          `json:"jsonrpc"`
			ID      uint64          `json:"id"`
			Method  string          `json:"method"`
			Params  json.RawMessage `json:"params,omitempty"`
		}{"2.0", e.Number, e.Method, withoutVolatile(e.params)})
		_, err := fmt.Fprintf(w, scriptRequest, comment(e.Time.Format("15:04:05.000")+" "+e.Method+" "+e.Name), n, body)
		return err
	})
}

// isHandshake reports methods that scripts and snippets must not repeat: handshakes, and
// streams that never end.
func isHandshake(method string) bool {
	switch method {
	case "initialize", "server/discover", "subscriptions/listen":
		return true
	}
	return false
}

// withoutVolatile removes the members of _meta that belong to the recorded session.
func withoutVolatile(params json.RawMessage) json.RawMessage {
	if !rawjson.IsObject(params) {
		return params
	}
	return rawjson.Filter(params, func(name rawjson.Key, value []byte) ([]byte, bool) {
		if key, _ := rawjson.String(name); key != "_meta" || !rawjson.IsObject(value) {
			return value, true
		}
		value = rawjson.Filter(value, func(name rawjson.Key, v []byte) ([]byte, bool) {
			key, _ := rawjson.String(name)
			return v, key != "progressToken" && !strings.HasPrefix(key, "io.modelcontextprotocol/")
		})
		var rest map[string]json.RawMessage
		return value, json.Unmarshal(value, &rest) != nil || len(rest) > 0
	})
}

// comment returns text that stays within one line of a comment.
func comment(text string) string {
	const most = 200
	return termtext.Line(termtext.Truncate(strings.TrimSpace(text), most))
}

// cleanURL returns an HTTP URL in POSIX quotes.
func cleanURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("invalid URL %q; use the address of a Streamable HTTP endpoint, such as %s", text, DefaultURL)
	}
	return "'" + strings.NewReplacer("'", "%27", `\`, "%5C", "}", "%7D").Replace(u.String()) + "'", nil
}
