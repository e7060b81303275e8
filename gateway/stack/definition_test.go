package stack

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

func TestADefinitionTellsHowAServerIsStartedWithoutItsSecrets(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{"files", `"tools":[]`, fmt.Sprintf(", env: {API_TOKEN: %q, LEVEL: x}", "s3cret-value-of-a-token")})
	c := open(t, i, nil)
	var d report.Definition
	require.Eventually(t, func() bool {
		d = c.Definition("files")
		return d.Processes > 0 || runtime.GOOS == "windows"
	}, patience, 10*time.Millisecond)
	require.Contains(t, d.Command, termtext.QuoteWord(e2e.TestServer), "as a shell parses it")
	require.Contains(t, d.Command, "files.json")
	require.NotEmpty(t, logs["files"])
	require.Equal(t, filepath.Dir(i.o.Config.Path), d.Folder, "regardless of the daemon's folder")
	require.Equal(t, []string{"API_TOKEN", "LEVEL"}, d.Env)
	require.NotContains(t, fmt.Sprintf("%+v", d), "s3cret")
	if runtime.GOOS != "windows" {
		require.Positive(t, d.Memory)
	}
	require.Equal(t, report.Definition{}, c.Definition("nobody"))
}
