package doctor

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"goblin/gateway/config"
)

// otherURLTimeout is the limit for one address.
const otherURLTimeout = 3 * time.Second

// tryOtherURLs tries common variations of a URL in turn, for at most the server's
// startup_timeout. It returns the fix, or "" if no MCP server responds.
func (p *serverCheck) tryOtherURLs(ctx context.Context, base *url.URL) (fix string) {
	ctx, cancel := context.WithTimeout(ctx, p.s.StartupTimeout)
	defer cancel()
	for _, to := range otherURLs(base) {
		s := *p.s
		s.URL, s.StartupTimeout = to.String(), min(otherURLTimeout, p.s.StartupTimeout)
		s.Type, s.TypeSet = config.HTTP, false // falls back to SSE
		if t := p.connect(ctx, &s); t.opened {
			const why = "an MCP server responds there"
			if at := to.String(); p.Redact(at) == at {
				return fmt.Sprintf("set %s in %q: %s", p.s.Entry("url", at), p.s.Name, why)
			}
			return fmt.Sprintf("set the path in url of %q to %s: %s", p.s.Name, to.Path, why)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return ""
}

func otherURLs(base *url.URL) (list []*url.URL) {
	add := func(scheme, at string) {
		to := *base
		to.Scheme, to.Path, to.RawPath = scheme, at, ""
		known := func(u *url.URL) bool { return u.Scheme == to.Scheme && u.Path == to.Path }
		if !known(base) && !slices.ContainsFunc(list, known) {
			list = append(list, &to)
		}
	}
	at := strings.TrimSuffix(base.Path, "/")
	if base.Path != at {
		add(base.Scheme, at)
	} else {
		add(base.Scheme, at+"/")
	}
	for _, end := range []string{"mcp", "sse"} {
		if last := path.Base(at); last == "mcp" || last == "sse" {
			add(base.Scheme, path.Join(path.Dir(at), end))
		} else {
			add(base.Scheme, at+"/"+end)
		}
		add(base.Scheme, "/"+end)
	}
	add(base.Scheme, "/")
	if base.Scheme == "http" {
		add("https", base.Path)
	}
	return list
}
