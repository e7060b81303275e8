package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func TestTracesStartOnlyIfTheConfigSaysSo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"": false, "otel: off": false, "otel: false": false, "otel: true": true, "otel: {}": true, "otel:": true} {
		require.Equal(t, want, parsed(t, "servers: {s: {command: c}}\n"+text).OTel.On, text)
	}
}

func TestHeadersOfTheReceiverAreSecret(t *testing.T) {
	t.Parallel()
	cfg := parsed(t, `{servers: {s: {command: c}}, otel: {endpoint: "http://u:otel-password@h", headers: {Authorization: "Bearer ${keyring:t}", X-Key: otel-secret}}}`)
	mask := config.NewMask(cfg)
	require.Equal(t, "[hidden] [hidden] Bearer ${keyring:t}", mask.String("otel-secret otel-password Bearer ${keyring:t}"))

	now, secrets := cfg.OTel.Resolve(t.Context(), answers(map[string]string{"keyring:t": "the-token"}))
	require.Equal(t, map[string]string{"Authorization": "Bearer the-token", "X-Key": "otel-secret"}, now.Headers)
	require.Equal(t, []string{"the-token"}, secrets)
	require.True(t, now.On)
	require.Empty(t, now.Missing.Text)

	now, _ = cfg.OTel.Resolve(t.Context(), answers(nil))
	require.Contains(t, now.Missing.String(), "/etc/goblin/c.yaml:1: ${keyring:t}")
	require.Contains(t, now.Missing.Text, "is not set; set it")
}

func TestAnUnsetVariableInHeadersStopsTracesOnly(t *testing.T) {
	t.Parallel()
	cfg := parsed(t, "servers: {s: {command: c}}\notel: {headers: {X-Key: '${NOT_THERE}'}}")
	require.Contains(t, cfg.OTel.Missing.Text, "${NOT_THERE} is not set")
	require.Contains(t, cfg.Warnings, cfg.OTel.Missing)
	require.Empty(t, cfg.Servers[0].Problem)
}
