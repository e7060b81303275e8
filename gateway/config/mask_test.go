package config_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

const masked = "[hidden]"

func secretive(more ...string) *config.Config {
	env := map[string]string{"KEY": "env \"secret\"", "DEBUG": "true"}
	for i, v := range more {
		env["SECRET_"+strconv.Itoa(i)] = v
	}
	return &config.Config{
		Gateway: config.Gateway{AuthToken: "gateway-token"},
		Search:  config.Search{Embeddings: "https://u:embed-password@example.com/v1", AuthToken: "embed-token"},
		Servers: []config.Server{{
			Env:     env,
			Headers: map[string]string{"Authorization": "Bearer header-secret", "X-Key": "plain-secret"},
			URL:     "https://user:url-password@example.com/mcp?key=query%20secret&v=1",
		}},
	}
}

func TestSecretsOfTheConfigAreMasked(t *testing.T) {
	t.Parallel()
	m := config.NewMask(secretive("overlap-a-b", "a-b-overlaps", "header-secrets"))
	tests := []struct{ in, want string }{
		{"token gateway-token.", "token [hidden]."},
		{"embeddings by embed-token, embed-password", "embeddings by [hidden], [hidden]"},
		{`env "secret"`, "[hidden]"},
		{`quoted "env \"secret\""`, `quoted "[hidden]"`},
		{"Bearer header-secret", "[hidden]"},
		{"only header-secret", "only [hidden]"},
		{"plain-secret", "[hidden]"},
		{`Get "https://user:url-password@example.com/mcp?key=query%20secret&v=1"`, `Get "https://[hidden]@example.com/mcp?[hidden]"`},
		{"url-password and query secret", "[hidden] and [hidden]"},
		{"DEBUG is true", "DEBUG is true"},
		{"the longest: header-secrets", "the longest: [hidden]"},
		{"nothing is left of overlap-a-b-overlaps.", "nothing is left of [hidden]."},
		{"plain-secretplain-secret", "[hidden][hidden]"},
		{"plain-secre plain-secre", "plain-secre plain-secre"},
		{"", ""},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, m.String(tt.in))
		require.Equal(t, tt.want, string(m.Head([]byte(tt.in), 1000)))
	}
	require.Equal(t, "x", (*config.Mask)(nil).String("x"))
	require.Equal(t, "x", string((*config.Mask)(nil).Head([]byte("xy"), 1)))
	nothing := config.NewMask(&config.Config{})
	require.Equal(t, "plain-secret", nothing.String("plain-secret"))
	nothing.Add(secretive())
	require.Equal(t, "[hidden]", nothing.String("plain-secret"))
	nothing.Add(&config.Config{})
	require.Equal(t, "[hidden]", nothing.String("plain-secret"), "redacted text stays redacted")

	var out strings.Builder
	n, err := m.Writer(&out).Write([]byte("a plain-secret\n"))
	require.NoError(t, err)
	require.Equal(t, len("a plain-secret\n"), n)
	require.Equal(t, "a [hidden]\n", out.String())
}

func TestSecretsAreMaskedHoweverTheyAreEscaped(t *testing.T) {
	t.Parallel()
	const secret = "p&ss/<wörd>\"\\\u2028😀'="
	m := config.NewMask(secretive(secret))
	goText, err := json.Marshal(secret)
	require.NoError(t, err)
	within := func(text string) string {
		quoted, err := json.Marshal(`{"key":"` + text + `"}`)
		require.NoError(t, err)
		return string(quoted)
	}
	forms := map[string]string{
		"plain":                secret,
		"Go":                   strings.Trim(string(goText), `"`),
		"Go, quoted":           strings.Trim(strconv.Quote(secret), `"`),
		"ASCII":                "p&ss/<w\\u00f6rd>\\\"\\\\\\u2028\\ud83d\\ude00'=",
		"ASCII, upper case":    "p&ss/<w\\u00F6rd>\\\"\\\\\\u2028\\uD83D\\uDE00'=",
		"slashes":              "p&ss\\/<wörd>\\\"\\\\\u2028😀'=",
		"ASCII and slashes":    "p&ss\\/<w\\u00f6rd>\\\"\\\\\\u2028\\ud83d\\ude00'=",
		"HTML and ASCII":       "p\\u0026ss/\\u003cw\\u00f6rd\\u003e\\\"\\\\\\u2028\\ud83d\\ude00'=",
		"HTML, ASCII, slashes": "p\\u0026ss\\/\\u003Cw\\u00F6rd\\u003E\\\"\\\\\\u2028\\uD83D\\uDE00'=",
		"Gson":                 "p\\u0026ss/\\u003cwörd\\u003e\\\"\\\\\\u2028😀\\u0027\\u003d",
		".NET":                 "p\\u0026ss/\\u003Cw\\u00F6rd\\u003E\\u0022\\\\\\u2028\\uD83D\\uDE00\\u0027=",
		"a query":              url.QueryEscape(secret),
		"a path":               url.PathEscape(secret),
	}
	for name, form := range forms {
		require.Equal(t, `{"key":"`+masked+`"}`, m.String(`{"key":"`+form+`"}`), name)
		switch name {
		case "plain", "a query", "a path", "Go, quoted": // without JSON
		default:
			require.NotContains(t, m.String(within(form)), "ss", name)
		}
	}
}

func TestSecretsWithTheLineBreaksOfUnicodeAreMaskedAsGoWritesThem(t *testing.T) {
	t.Parallel()
	const secret = "<först>\u2028second\u2029third"
	text, err := json.Marshal(secret)
	require.NoError(t, err)
	require.Equal(t, `"`+masked+`"`, config.NewMask(secretive(secret)).String(string(text)))
}

func TestOnlyWhatIsSecretOfEnvIsMasked(t *testing.T) {
	t.Parallel()
	const text = `servers: {s: {command: c, env: {
		%s: '%s'
	}}}`
	vars := map[string]string{"HOME": "/home/somebody", "USER": "somebody", "KEY": "value-of-key", "ROOT": "/value/of/root"}
	for _, tt := range []struct {
		key, value, text string
		hidden           bool
	}{
		{"ROOT", "/srv/files", "/srv/files", false},
		{"NAME", "some text", "some text", false},
		{"ROOT", "${HOME}/files", "/home/somebody/files", false},
		{"WHO", "${USER}", "somebody", false},
		{"ROOT", "${UNSET:-/srv/files}", "/srv/files", false},
		{"ROOT", "${ROOT}", "/value/of/root", true},
		{"NAME", "${KEY}", "value-of-key", true},
		{"NAME", "a ${KEY}", "a value-of-key", true},
		{"NAME", "${UNSET:-${KEY}}", "value-of-key", true},
		{"NAME", "$${KEY}", "${KEY}", false},
		{"API_KEY", "literal-key", "literal-key", true},
		{"gh_token", "literal-key", "literal-key", true},
		{"AWS_SECRET_ID", "literal-key", "literal-key", true},
		{"DbPassword", "12345678", "12345678", true},
		{"PASSWORD", "secret.example", "secret.example", true},
		{"CREDENTIALS", "literal-key", "literal-key", true},
		{"SESSION_COOKIE", "literal-key", "literal-key", true},
		{"BASIC_AUTH", "literal-key", "literal-key", true},
		{"PASS_FILE", "/run/secrets/db", "/run/secrets/db", false},
		{"KEY_FILE", "./keys/a.pem", "./keys/a.pem", false},
		{"AUTH_HOST", "auth.example.com:8443", "auth.example.com:8443", false},
		{"AUTH_HOST", "localhost:8443", "localhost:8443", false},
		{"AUTH_HOST", "10.20.30.40", "10.20.30.40", false},
		{"AUTH_HOST", "10.20.30.40:8000", "10.20.30.40:8000", false},
		{"MAX_TOKENS", "2000000", "2000000", false},
		{"DATABASE", "postgres://u:hidden-one@db/x", "postgres://u:hidden-one@db/x", true},
		{"DATABASE", "postgres://u:hidden^one@db/x", "postgres://u:hidden^one@db/x", true},
		{"SITE", "https://example.com/@someone/100%", "https://example.com/@someone/100%", false},
	} {
		cfg, err := config.Parse("goblin.yaml", fmt.Appendf(nil, text, tt.key, tt.value), func(name string) (string, bool) {
			v, ok := vars[name]
			return v, ok
		})
		require.NoError(t, err)
		require.Equal(t, tt.text, cfg.Servers[0].Env[tt.key])
		uri := "mcp://s/file://" + tt.text
		require.Equal(t, tt.hidden, config.NewMask(cfg).String(uri) != uri, "%s: %s", tt.key, tt.value)
	}
}

func TestThePasswordOfAURLInEnvIsMaskedHoweverTheServerWritesTheURL(t *testing.T) {
	t.Parallel()
	m := config.NewMask(&config.Config{Servers: []config.Server{{Env: map[string]string{
		"DATABASE": "postgres://me:hidden-one@db/x", "QUEUE": "amqp://me:hidden^two@mq", "TRIAL": "postgres://postgres:postgres@db/x", "REPO": "ssh://gitlab@git.example/x",
	}}}})
	require.Equal(t, "db:5432 by [hidden], mq by [hidden], postgres and gitlab", m.String("db:5432 by me:hidden-one, mq by hidden^two, postgres and gitlab"))
}

func TestWhereAValueCameFromMakesNoOtherServer(t *testing.T) {
	t.Parallel()
	server := func(value string) *config.Server {
		cfg, err := config.Parse("goblin.yaml", []byte("servers: {s: {command: c, env: {A: '"+value+"'}}}"), func(string) (string, bool) { return "text", true })
		require.NoError(t, err)
		return &cfg.Servers[0]
	}
	require.True(t, server("text").Equal(server("${A}")))
	require.False(t, server("text").Equal(server("other")))
}

func TestHeadLeavesNoPartOfASecret(t *testing.T) {
	t.Parallel()
	m := config.NewMask(secretive())
	const n = 100
	for at := range 2 * n {
		body := []byte("header-secret" + strings.Repeat(".", at) + "gateway-token" + strings.Repeat(".", 200))
		before := string(body)
		got := string(m.Head(body, n))
		require.Equal(t, before, string(body), "the text is unchanged")
		require.True(t, strings.HasPrefix(got, masked+"."[:min(at, 1)]), got)
		require.NotContains(t, got, "gate")
		switch last := n - len("header-secret") - at; {
		case last <= 0:
			require.Equal(t, masked+strings.Repeat(".", n-len("header-secret")), got)
		case last < len("gateway-token"):
			require.Equal(t, masked+strings.Repeat(".", at)+masked, got)
		}
	}
	plain := []byte("nothing here at all")
	require.Same(t, &plain[0], &m.Head(plain, 10)[0], "not copied")
}

func FuzzMaskFindsASecret(f *testing.F) {
	f.Add("header-secret", "a header-secret", 5)
	f.Add("a/b c\"", "aa/b caa%2Fb+c", 20)
	f.Add("ababab", "abababababab", 0)
	f.Fuzz(func(t *testing.T, secret, text string, n int) {
		if len(secret) < 6 || len(secret) > 1000 || strings.Contains(masked, secret) || !utf8.ValidString(secret) {
			t.Skip()
		}
		m := config.NewMask(secretive(secret + "\x01")) // below the limit for values of env
		whole := text + secret + "\x01" + text
		quoted, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{whole, string(quoted)} {
			got := m.String(s)
			if strings.Contains(got, secret+"\x01") || !strings.Contains(got, masked) {
				t.Fatalf("secret %q in %q: %q", secret, s, got)
			}
			if len(s) > 0 {
				n = int(uint(n) % uint(len(s)))
				head := string(m.Head([]byte(s), n))
				if strings.Contains(head, secret+"\x01") || string(m.Head([]byte(s), len(s))) != got {
					t.Fatalf("secret %q, first %d of %q: %q", secret, n, s, head)
				}
			}
		}
	})
}

// BenchmarkMask measures a log line of 200 bytes and a long line of a recorded body.
func BenchmarkMask(b *testing.B) {
	for _, secrets := range []int{1, 10, 200} {
		var more []string
		for i := range secrets {
			more = append(more, fmt.Sprintf("sk-%037d", i))
		}
		m := config.NewMask(secretive(more...))
		for _, size := range []int{200, 64 << 10} {
			text := strings.Repeat(`{"content":[{"type":"text","text":"the quick brown fox"}]}`, size/50)[:size]
			for name, body := range map[string][]byte{"none": []byte(text), "one": []byte(text[:size/2] + more[0] + text[size/2:])} {
				b.Run(fmt.Sprintf("%d secrets/%d B/%s", secrets, size, name), func(b *testing.B) {
					b.ReportAllocs()
					b.SetBytes(int64(size))
					for b.Loop() {
						m.Head(body, 64<<10)
					}
				})
			}
		}
	}
}

// BenchmarkNewMask measures a start with 20 secrets that encoders escape.
func BenchmarkNewMask(b *testing.B) {
	var more []string
	for i := range 20 {
		more = append(more, fmt.Sprintf("dGhl/cXVpY2s+%d/YnJvd24gZm94IGp1bXBz+==", i))
	}
	cfg := secretive(more...)
	for b.Loop() {
		config.NewMask(cfg)
	}
}

func TestErrorsOfDamagedJSONShowNoValue(t *testing.T) {
	t.Parallel()
	for value, place := range map[string]string{
		`S3CRET`:       "2: not valid JSON: invalid literal in column 7",
		`"S3CRET\q"`:   "2: not valid JSON: invalid literal in column 7",
		"\"S3\nCRET\"": "2: not valid JSON: invalid literal in column 7",
		`"S3CRET" x`:   "2: not valid JSON: invalid character 'x'",
		`"S3CRET`:      "2: not valid JSON: unexpected end of file",
	} {
		_, err := config.Parse("c.json", []byte("{\"servers\": {\"a\": {\"command\": \"x\", \"env\":\n {\"K\":"+value), nil)
		require.ErrorContains(t, err, place, value)
		for _, part := range []string{"S3", "CRET"} {
			require.NotContains(t, err.Error(), part)
		}
	}
}

func TestPlaceholdersWithAKeyDistinguishSecrets(t *testing.T) {
	t.Parallel()
	m, other := config.NewMask(secretive()), new(config.Mask)
	m.SetKey([]byte("one"))
	other.SetKey([]byte("one")) // also without secrets
	other.Add(secretive())
	token := m.String("gateway-token")
	require.Regexp(t, `^\[hidden:[0-9a-f]{8}\]$`, token)
	require.Equal(t, token, other.String("gateway-token"))
	require.NotEqual(t, token, m.String("plain-secret"))
	require.Equal(t, "a "+token+" b", string(m.Head([]byte("a gateway-token b"), 100)))
	require.Equal(t, m.String(`env "secret"`), m.String(`env \"secret\"`), "the spelling does not matter")
	m.SetKey([]byte("two"))
	require.NotEqual(t, token, m.String("gateway-token"))
	m.SetKey(nil)
	require.Equal(t, masked, m.String("gateway-token"))
}
