package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func secretive() *config.Config {
	return &config.Config{
		Gateway: config.Gateway{AuthToken: "gateway-token"},
		Servers: []config.Server{{
			Env:     map[string]string{"KEY": "env \"secret\"", "DEBUG": "true"},
			Headers: map[string]string{"Authorization": "Bearer header-secret", "X-Key": "plain-secret"},
			URL:     "https://user:url-password@example.com/mcp?key=query%20secret&v=1",
		}},
	}
}

func TestSecretsOfTheConfigAreMasked(t *testing.T) {
	t.Parallel()
	m := config.NewMask(secretive())
	tests := []struct{ in, want string }{
		{"token gateway-token.", "token [hidden]."},
		{`env "secret"`, "[hidden]"},
		{`quoted "env \"secret\""`, `quoted "[hidden]"`},
		{"Bearer header-secret", "[hidden]"},
		{"only header-secret", "only [hidden]"},
		{"plain-secret", "[hidden]"},
		{`Get "https://user:url-password@example.com/mcp?key=query%20secret&v=1"`, `Get "https://[hidden]@example.com/mcp?[hidden]"`},
		{"url-password and query secret", "[hidden] and [hidden]"},
		{"DEBUG is true", "DEBUG is true"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, m.String(tt.in))
	}
	require.Equal(t, "x", (*config.Mask)(nil).String("x"))
	require.Nil(t, config.NewMask(&config.Config{}))

	var out strings.Builder
	n, err := m.Writer(&out).Write([]byte("a plain-secret\n"))
	require.NoError(t, err)
	require.Equal(t, len("a plain-secret\n"), n)
	require.Equal(t, "a [hidden]\n", out.String())
}
