package reference

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry/report"
)

func keysOf(t *testing.T, text string) map[string]report.ConfigKey {
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	all := map[string]report.ConfigKey{}
	for _, k := range Reader(path)() {
		all[k.Path] = k
	}
	return all
}

func TestLinesOfKeys(t *testing.T) {
	all := keysOf(t, "servers:\n  web:\n    url: https://x/\n    call_timeout: 1m\n  b:\n    command: x\n    call_timeout: 2m\n"+
		"rules:\n  - deny: no\ntui:\n  theme: dark\n")
	require.Equal(t, []report.ConfigLine{{Path: "servers.web.call_timeout", Line: 4}, {Path: "servers.b.call_timeout", Line: 7}}, all["servers.NAME.call_timeout"].Set)
	require.Equal(t, []report.ConfigLine{{Path: "tui.theme", Line: 11}}, all["tui.theme"].Set)
	require.Equal(t, "10m", all["servers.NAME.call_timeout"].Default)
	require.Empty(t, all["log.level"].Set)
}

func TestLinesOfABrokenConfig(t *testing.T) {
	for _, text := range []string{"", "\x00", "[1, 2]", "a: [", "servers: 3\ntui: [x]\n"} {
		require.NotEmpty(t, keysOf(t, text), text)
	}
	require.NotEmpty(t, Reader("/nowhere")())
}

// Users copy the examples.
func TestExamplesAreYAML(t *testing.T) {
	for _, k := range Keys() {
		_, err := config.Parse("x.yaml", []byte(k.Example), os.LookupEnv)
		if err != nil {
			require.NotContains(t, err.Error(), "unknown key", k.Path)
			require.False(t, strings.Contains(err.Error(), "cannot parse"), "%s: %v\n%s", k.Path, err, k.Example)
		}
	}
}
