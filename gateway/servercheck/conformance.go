package servercheck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"goblin/gateway/childproc"
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
	npx, err := exec.LookPath("npx")
	if err != nil {
		c.Problem = "not run: npx was not found in PATH; install Node.js 22 or later"
		return c
	}
	dir, err := os.MkdirTemp("", "goblin-conformance-")
	if err != nil {
		c.Problem = fmt.Sprintf("not run: %v", err)
		return c
	}
	defer func() { _ = os.RemoveAll(dir) }()
	words, err := runGroup(ctx, exec.Command(npx, "--yes", conformancePackage, "server", "--url", url, "--requirements", c.Revision, "--output-dir", dir))
	c.read(dir)
	if c.Scenarios == 0 { // a failed scenario is an error of the suite, too
		c.Problem = "not run: " + termtext.Line(clip(cmp.Or(words, fmt.Sprint(err))))
	}
	return c
}

// runGroup runs a command and kills its group if ctx ends. It returns the last line of the
// output.
func runGroup(ctx context.Context, cmd *exec.Cmd) (last string, err error) {
	ctx, cancel := context.WithTimeout(ctx, conformanceTime)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	cmd.Stdout, cmd.Stderr = w, w
	var group *childproc.Group
	group, err = childproc.StartGroup(cmd, true)
	_ = w.Close()
	if err != nil {
		return "", err
	}
	childproc.Track(group, true)
	defer childproc.Track(group, false)
	defer context.AfterFunc(ctx, group.Kill)()
	var tail []byte
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 4<<10)
		for {
			n, err := r.Read(buf)
			tail = append(tail, buf[:n]...)
			tail = tail[max(0, len(tail)-len(buf)):]
			if err != nil {
				return
			}
		}
	})
	err = group.Reap(cmd)
	_ = r.SetReadDeadline(time.Now().Add(drainTime))
	reading.Wait()
	text := bytes.TrimSpace(tail)
	return string(bytes.TrimSpace(text[bytes.LastIndexByte(text, '\n')+1:])), errors.Join(err, ctx.Err())
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
