package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func TestWhatIsSecretOfArgumentsAndURLsIsMasked(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"HOME": "/home/somebody", "TOKEN": "value-of-token", "ROOT": "/value/of/root", "PORT": "123456", "PIN_SECRET": "654321", "TEAM": "the-team"}
	for _, tt := range []struct{ server, text, want string }{
		{`args: ["${TOKEN}"]`, "value-of-token", masked},
		{`args: ["--x=a${TOKEN}b"]`, "a value-of-token", "a " + masked},
		{`args: ["${TEAM}"]`, "the-team", masked},
		{`args: ["${ROOT}", "${PORT}", "${HOME}", "${NONE:-fallback}"]`, "/value/of/root 123456 /home/somebody fallback", "/value/of/root 123456 /home/somebody fallback"},
		{`args: ["${PIN_SECRET}"]`, "654321", masked},
		{`args: [--api-key, literal-key]`, "literal-key", masked},
		{`args: [--token=literal-token, --password=123456]`, "literal-token 123456", masked + " " + masked},
		{`args: [run, -e, GITHUB_TOKEN=literal-token, image]`, "token literal-token of image", "token " + masked + " of image"},
		{`args: [mcp-remote, "https://example.com/mcp", --header, "Authorization: Bearer literal-token"]`, "https://example.com/mcp literal-token", "https://example.com/mcp " + masked},
		{`args: ["postgres://me:literal-pass@db/x"]`, "literal-pass at db", masked + " at db"},
		{`args: ["postgres://me:literal-pass@/db?host=/run/db"]`, "literal-pass at db", masked + " at db"},
		{`args: ["postgres://me:literal^pass@db/x", "DB=amqp://me:50%off-today@mq"]`, "literal^pass at db, 50%off-today at mq", masked + " at db, " + masked + " at mq"},
		{`args: ["postgres://me:literal#/?pass@db/x"]`, "literal#/?pass at db", masked + " at db"},
		{`args: ["https://literal-user@x.example/"]`, "literal-user", masked},
		{`args: ["https://x.example/?q=Zk3aq90Xb17TgQm2v8Yc", "--url=https://x.example/Ak3aq90Xb17TgQm2v8Yc/mcp"]`, "Zk3aq90Xb17TgQm2v8Yc Ak3aq90Xb17TgQm2v8Yc", masked + " " + masked},
		{`args: ["Cookie: sid=literal-sid; theme=the-dark"]`, "theme=the-dark", "theme=the-dark"},
		{`args: ["--url=https://x.example/?api_key=literal-key&page=overview"]`, "literal-key overview", masked + " overview"},
		{`args: [--token-file, /run/token, --max-tokens, "128000", --author, somebody, --primary-key, user_id]`, "/run/token 128000 somebody user_id", "/run/token 128000 somebody user_id"},
		{`args: [--auth, --verbose, server]`, "--verbose server", "--verbose server"},
		{`url: "https://example.com/s/${TOKEN}/mcp"`, "s/value-of-token", "s/" + masked},
		{`url: "https://example.com/s/Zk3aq90Xb17TgQm2v8Yc/mcp"`, "s/Zk3aq90Xb17TgQm2v8Yc", "s/" + masked},
		{`url: "https://example.com/s/abcdefghijklmnop1234/mcp"`, "s/abcdefghijklmnop1234", "s/" + masked},
		{`url: "https://example.com/orders/12345678901234567890/mcp"`, "12345678901234567890", "12345678901234567890"},
		{`url: "https://example.com/mcp", headers: {Cookie: "sid=literal-sid; theme=the-dark"}`, "theme=the-dark", "theme=the-dark"},
		{`url: "https://example.com/projects/my-own-project-name/mcp"`, "my-own-project-name", "my-own-project-name"},
		{`overrides: {tools: {t: {arguments: {key: "a${TOKEN}", in: ["${ROOT}", {by: "${TEAM}"}]}}}}`, "value-of-token /value/of/root the-team", masked + " /value/of/root " + masked},
		{`tags: []}}, profiles: {p: {overrides: {s: {tools: {t: {arguments: {key: "${TOKEN}"}, title: "${TEAM}"}}}}`, "value-of-token the-team", masked + " the-team"},
	} {
		if !strings.Contains(tt.server, "url:") {
			tt.server = "command: c, " + tt.server
		}
		cfg, err := config.Parse("c.yaml", []byte("{servers: {s: {"+tt.server+"}}}"), func(name string) (string, bool) {
			value, ok := vars[name]
			return value, ok
		})
		require.NoError(t, err, tt.server)
		require.Equal(t, tt.want, config.NewMask(cfg).String(tt.text), tt.server)
	}
}
