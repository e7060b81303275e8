//go:build conformance

package interop

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// skillful is a server with skills (SEP-2640): their files and folders.
func skillful() e2e.Obj {
	reads, folders := e2e.Obj{}, e2e.Obj{}
	var skills []e2e.Obj
	var resources []e2e.Obj
	for _, name := range []string{"brew-tea", "fold-paper"} {
		folder := "skill://" + name
		files := map[string]string{
			"SKILL.md":        fmt.Sprintf("---\nname: %s\ndescription: How to %s.\n---\n\n# Steps\n\nBegin at the beginning.\n", name, name),
			"references/A.md": "# More\n\nMore about " + name + ".\n",
		}
		var entries []e2e.Obj
		for _, file := range []string{"SKILL.md", "references/A.md"} {
			uri, text := folder+"/"+file, files[file]
			reads[uri] = e2e.Obj{"contents": []e2e.Obj{{"uri": uri, "mimeType": "text/markdown", "text": text}}, "ttlMs": 0, "cacheScope": "private"}
			entries = append(entries, e2e.Obj{"uri": uri, "digest": fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))), "size": len(text)})
			resources = append(resources, e2e.Obj{"uri": uri, "name": filepath.Base(file), "mimeType": "text/markdown"})
		}
		skills = append(skills, e2e.Obj{
			"uri": folder + "/SKILL.md", "resources": entries,
			"frontmatter": e2e.Obj{"name": name, "description": "How to " + name + "."},
		})
		folders[folder] = []e2e.Obj{
			{"uri": folder + "/SKILL.md", "name": "SKILL.md", "mimeType": "text/markdown"},
			{"uri": folder + "/references", "name": "references", "mimeType": "inode/directory"},
		}
		folders[folder+"/references"] = []e2e.Obj{{"uri": folder + "/references/A.md", "name": "A.md", "mimeType": "text/markdown"}}
	}
	return e2e.Obj{"era": "modern", "hints": e2e.Obj{"ttlMs": 60000, "cacheScope": "public"}, "resources": resources, "skills": skills, "reads": reads, "folders": folders}
}

// skillChecks returns the results of the suite's scenarios about skills for a server, in
// order.
func skillChecks(t *testing.T, url string) (checks []string) {
	t.Helper()
	dir := npm(t)
	for _, scenario := range []string{"sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"} {
		results := t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, nodeBinary(dir), filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
			"server", "--url", url, "--scenario", scenario, "--output-dir", results)
		out, _ := cmd.CombinedOutput() // a failed check makes it exit with an error
		files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
		require.NoError(t, err)
		require.Len(t, files, 1, "%s", out)
		text, err := os.ReadFile(files[0])
		require.NoError(t, err)
		var all []struct {
			ID, Status string
			Message    string `json:"errorMessage"`
		}
		require.NoError(t, json.Unmarshal(text, &all))
		for _, c := range all {
			checks = append(checks, strings.TrimSpace(scenario+" "+c.ID+" "+c.Status+" "+c.Message))
		}
	}
	sort.Strings(checks)
	return checks
}

func TestConformanceOfSkillsIsAsGoodAsDirect(t *testing.T) {
	direct := e2e.NewWorld(t)
	b := direct.Remote("shop", "/mcp", skillful())
	want := skillChecks(t, e2e.Str(e2e.Marshal(b.Conf), "url"))
	require.NotEmpty(t, want)
	for _, check := range want {
		require.NotContains(t, check, "FAILURE", "direct")
	}
	for _, kind := range []string{"stdio", "http"} {
		t.Run(kind, func(t *testing.T) {
			w := e2e.NewWorld(t)
			if kind == "http" {
				w.Remote("shop", "/mcp", skillful())
			} else {
				w.Backend("shop", skillful())
			}
			require.Equal(t, want, skillChecks(t, w.Serve().Base+"/mcp"))
		})
	}
}
