//go:build conformance

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const (
	conformant  = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0"
	conformName = "everything-server"
)

// conformServer installs the suite's own Go server into the cache folder.
func conformServer(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(cacheDir(t), "gobin")
	path := filepath.Join(bin, conformName)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.Command("go", "install", conformant)
	cmd.Env = append(os.Environ(), "GOBIN="+bin)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// verdicts runs the suite against a URL. It returns the results of its checks as sorted
// "id STATUS" by scenario, and a summary of the scored scenarios.
func verdicts(t *testing.T, url, suite string) (checks map[string][]string, summary string) {
	t.Helper()
	dir := npm(t)
	results := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, nodeBinary(dir), filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
		"server", "--url", url, "--requirements", suite, "--output-dir", results)
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		t.Fatalf("the suite did not finish: %s", out)
	}
	_, summary, _ = strings.Cut(string(out), "=== SUMMARY ===") // a failed check makes it exit with an error
	checks = map[string][]string{}
	files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "%s", out)
	stamp := regexp.MustCompile(`-\d{4}-\d\d-\d\dT[-0-9]+Z$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var all []struct{ ID, Status string }
		require.NoError(t, json.Unmarshal(text, &all))
		name := strings.TrimPrefix(stamp.ReplaceAllString(filepath.Base(filepath.Dir(file)), ""), "server-") // of the folder, not of the scenario
		for _, c := range all {
			checks[name] = append(checks[name], c.ID+" "+c.Status)
		}
		sort.Strings(checks[name])
	}
	return checks, summary
}

// otherwise are the checks of scored scenarios that may have another result through
// Goblin. It answers a POST in JSON unless something must precede the answer, which the
// suite only notes.
var otherwise = map[string]string{
	"server-sse-streams-functional SUCCESS": "server-sse-streams-functional INFO",
	// Models see a server's HTTP error status as a result.
	"sep-2322-validate-input-responses SUCCESS": "sep-2322-validate-input-responses WARNING",
}

func asGood(direct, through []string) bool {
	var want []string
	for i, check := range direct {
		if other, ok := otherwise[check]; ok && i < len(through) && through[i] == other {
			check = other
		}
		want = append(want, check)
	}
	return strings.Join(want, "\n") == strings.Join(through, "\n")
}

// passed counts the scored scenarios without a failed check.
func passed(checks map[string][]string, summary string) (n int, failed []string) {
	unscored := notScored(summary)
	for name, all := range checks {
		if unscored[name] {
			continue
		}
		if text := strings.Join(all, "\n"); strings.Contains(text, "FAILURE") {
			failed = append(failed, name)
		} else {
			n++
		}
	}
	sort.Strings(failed)
	return n, failed
}

// notScored are the scenarios that the suite runs beyond the requirements.
func notScored(summary string) map[string]bool {
	names := map[string]bool{}
	_, rest, _ := strings.Cut(summary, "Not scored")
	for _, m := range regexp.MustCompile(`[✓✗] ([a-z0-9-]+) \(`).FindAllStringSubmatch(rest, -1) {
		names[m[1]] = true
	}
	return names
}

// requirements are the sets of scenarios to run, with the server's mode for each.
var requirements = []struct {
	revision  string
	scored    int // scenarios of that revision
	stateless bool
}{
	{revision: "2025-11-25", scored: 30},
	{revision: "2026-07-28", scored: 37, stateless: true},
}

// lostInOneProcess are the scored scenarios of 2026-07-28 that fail if Goblin uses only
// the older era over stdio (era: auto).
var lostInOneProcess = []string{
	"input-required-result-basic-elicitation", "input-required-result-basic-list-roots", "input-required-result-basic-sampling",
	"input-required-result-capability-check", "input-required-result-multi-round", "input-required-result-multiple-input-requests",
	"input-required-result-non-tool-request", "input-required-result-request-state", "input-required-result-result-type",
	"input-required-result-tampered-state", "server-stateless",
}

func TestConformanceThroughGoblinIsAsGoodAsDirect(t *testing.T) {
	server := conformServer(t)
	for _, r := range requirements {
		t.Run(r.revision, func(t *testing.T) {
			addr := fmt.Sprintf("127.0.0.1:%d", e2e.FreePort(t))
			cmd := exec.Command(server, "-http", addr, fmt.Sprintf("-stateless=%v", r.stateless))
			require.NoError(t, cmd.Start())
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // it was killed
			})
			s := &e2e.Web{Program: &e2e.Program{T: t}, Base: "http://" + addr, Http: e2e.NewHTTP(t)}
			e2e.Eventually(t, "the server listens", func() bool {
				resp, err := s.Http.Get(s.Base + "/mcp")
				if err != nil {
					return false
				}
				return resp.Body.Close() == nil
			})
			direct, summary := verdicts(t, s.Base+"/mcp", r.revision)
			n, failed := passed(direct, summary)
			require.Equal(t, r.scored, n, "direct: failed %v", failed)

			for kind, conf := range map[string]e2e.Obj{
				"stdio": {"command": server, "era": "both"}, "stdio, one process": {"command": server}, "http": {"url": s.Base + "/mcp"},
			} {
				t.Run(kind, func(t *testing.T) {
					w := e2e.NewWorld(t)
					b, _ := w.Fake("suite", e2e.Obj{})
					b.Conf = conf
					through, summary := verdicts(t, w.Serve().Base+"/mcp", r.revision)
					n, failed := passed(through, summary)
					if kind == "stdio, one process" && r.stateless {
						require.Subset(t, lostInOneProcess, failed)
						return
					}
					require.Equal(t, r.scored, n, "through Goblin: failed %v", failed)
					unscored := notScored(summary)
					for name, want := range direct {
						switch {
						case unscored[name]:
							t.Logf("not scored: %s\n direct: %v\n through: %v", name, want, through[name])
						case !asGood(want, through[name]):
							t.Errorf("%s\n direct: %v\n through: %v", name, want, through[name])
						}
					}
				})
			}
		})
	}
}
