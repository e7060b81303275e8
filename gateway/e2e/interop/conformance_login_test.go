//go:build conformance

package interop

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// logins are the official suite's scenarios of clients that log in: all scored ones, and
// both grants for machines.
var logins = strings.Fields(`
	metadata-default metadata-var1 metadata-var2 metadata-var3 basic-cimd pre-registration
	scope-from-www-authenticate scope-from-scopes-supported scope-omitted-when-undefined scope-step-up scope-retry-limit
	token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none
	2025-03-26-oauth-metadata-backcompat 2025-03-26-oauth-endpoint-fallback
	resource-mismatch offline-access-scope offline-access-not-supported authorization-server-migration metadata-issuer-mismatch
	iss-supported iss-not-advertised iss-supported-missing iss-wrong-issuer iss-unexpected iss-normalized
	client-credentials-jwt client-credentials-basic`)

func TestConformanceOfLogins(t *testing.T) {
	dir := npm(t)
	script, err := filepath.Abs(filepath.Join("testdata", "login.mjs"))
	require.NoError(t, err)
	home := t.TempDir()
	// The browser is started by its name alone.
	program := filepath.Join(home, "client")
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "\n")
	e2e.WriteProgram(t, program+".mjs", "#!"+nodeBinary(dir)+"\n"+rest)
	for _, scenario := range logins {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, nodeBinary(dir), filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
				"client", "--command", program+".mjs", "--scenario", "auth/"+scenario, "--timeout", "60000")
			cmd.Env = append(os.Environ(), "GOBLIN="+e2e.Goblin, "TMPDIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", e2e.Tail(string(out), 6000))
		})
	}
}
