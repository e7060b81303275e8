package servercheck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"goblin/gateway/childproc"
	"goblin/gateway/upstream/stderr"
	"goblin/registry/termtext"
)

// conformancePackage is the official conformance suite at the version that Goblin's own
// tests use.
const conformancePackage = "@modelcontextprotocol/conformance@0.2.0-alpha.12"

const conformanceTime = 5 * time.Minute

// Conformance is the result of the official conformance suite. The suite expects the tools
// of its own reference servers, so other servers fail many scenarios.
type Conformance struct {
	Suite     string   `json:"suite"`
	Revision  string   `json:"revision"`
	Scenarios int      `json:"scenarios"`
	Failed    []string `json:"failed"`            // scenarios with a failed check
	Problem   string   `json:"problem,omitempty"` // why the suite has no result
}

// Text returns the result in one line.
func (c *Conformance) Text() string {
	if c.Problem != "" {
		return c.Problem
	}
	text := fmt.Sprintf("%d of %s for %s passed; the suite expects the tools of its reference servers", c.Scenarios-len(c.Failed), termtext.Count(c.Scenarios, "scenario"), c.Revision)
	if len(c.Failed) > 0 {
		text += "; failed: " + strings.Join(c.Failed, ", ")
	}
	return text
}

// RunConformance runs the suite against the URL of a server, with npx. protocol is the
// server's revision.
func RunConformance(ctx context.Context, url, protocol string) *Conformance {
	c := &Conformance{Suite: conformancePackage, Revision: newest, Failed: []string{}}
	if protocol == modern {
		c.Revision = modern
	}
	npx, problem := findNode(ctx)
	if problem != "" {
		c.Problem = "not run: " + problem + "; install Node.js 22 or later"
		return c
	}
	dir, err := os.MkdirTemp("", "goblin-conformance-")
	if err != nil {
		c.Problem = fmt.Sprintf("not run: %v", err)
		return c
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(ctx, conformanceTime)
	defer cancel()
	var children *childproc.Registry // npx stops with this process
	cmd := exec.Command(npx, "--yes", conformancePackage, "server", "--url", url, "--requirements", c.Revision, "--output-dir", dir)
	output, err := children.Run(ctx, cmd, "", maxStderr)
	c.read(dir)
	if c.Scenarios == 0 { // a failed scenario is an error of the suite, too
		reason := "the suite wrote no results"
		if err != nil {
			reason = err.Error()
		}
		lines := strings.Split(strings.ToValidUTF8(string(bytes.TrimSpace(output)), "\uFFFD"), "\n")
		c.Problem = "not run: " + termtext.Line(clip(cmp.Or(stderr.ErrorLine(lines), reason)))
	}
	return c
}

// minNode is the oldest version of Node.js that runs the suite.
const minNode = 22

// findNode returns the path of npx, or a problem.
func findNode(ctx context.Context) (npx, problem string) {
	npx, err := exec.LookPath("npx")
	if err != nil {
		return "", "npx was not found in PATH"
	}
	version, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return "", fmt.Sprintf("node --version failed: %v", err)
	}
	text := strings.TrimSpace(string(version))
	major, _, _ := strings.Cut(strings.TrimPrefix(text, "v"), ".")
	if n, err := strconv.Atoi(major); err == nil && n < minNode {
		return "", "Node.js " + termtext.Line(clip(text)) + " is too old for the suite"
	}
	return npx, ""
}

// maxChecks is the maximum size of the result of a scenario, in bytes.
const maxChecks = 8 << 20

// read reads the folders of the scenarios, which are named after them and the time.
func (c *Conformance) read(dir string) {
	stamp := regexp.MustCompile(`-\d{4}-\d\d-\d\dT[-0-9]+Z$`)
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, maxChecks))
		_ = f.Close()
		var checks []struct{ Status string }
		if err != nil || json.Unmarshal(text, &checks) != nil {
			continue
		}
		c.Scenarios++
		name := strings.TrimPrefix(stamp.ReplaceAllString(filepath.Base(filepath.Dir(path)), ""), "server-")
		if slices.ContainsFunc(checks, func(one struct{ Status string }) bool { return one.Status == "FAILURE" }) {
			c.Failed = append(c.Failed, name)
		}
	}
	slices.Sort(c.Failed)
}
