package downstream

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"goblin/registry/rawjson"
)

// Projects determines the project of each session, for servers with a process per
// project: from the URL, otherwise the first root, otherwise the repository around the
// client's folder.
type Projects struct {
	// OnJoin is called when a session joined a project, or none ("").
	OnJoin func(s *Session, folder string)

	onJoinMu  sync.Mutex // held during OnJoin; lock it before mu
	mu        sync.Mutex
	decisions map[*Session]*decision
}

// decision is a session's project, final when done is closed.
type decision struct {
	done   chan struct{}
	reason string      // why there is no project
	stale  atomic.Bool // the roots changed meanwhile
}

const rootsTimeout = 5 * time.Second

// Resolve determines the project of a request's session. It waits for the client: at most
// rootsTimeout in a session, otherwise until a stateless client returns.
func (p *Projects) Resolve(ctx context.Context, x *Request) {
	for p.decide(ctx, x) && ctx.Err() == nil {
		continue
	}
}

// decide reports whether the roots changed meanwhile, so that it must run again.
func (p *Projects) decide(ctx context.Context, x *Request) (again bool) {
	s := x.Session()
	d := &decision{done: make(chan struct{})}
	if other := p.startDecision(s, d, x.Modern() == nil); other != nil {
		select {
		case <-other.done:
			return other.stale.Load()
		case <-ctx.Done():
			return false
		}
	}
	defer close(d.done)
	folder, final, err := findProject(ctx, x)
	p.onJoinMu.Lock()
	defer p.onJoinMu.Unlock()
	if d.stale.Load() {
		return true
	}
	if err != nil {
		d.reason = err.Error()
	}
	if s.Context().Err() == nil {
		s.SetProject(folder)
		p.OnJoin(s, folder)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !final || s.Context().Err() != nil:
		if p.decisions[s] == d {
			delete(p.decisions, s)
		}
	case x.Modern() != nil:
		p.decisions[s] = d
	}
	return false
}

// startDecision returns an existing decision, or registers d. Stateless calls don't share
// a decision: one client may never return.
func (p *Projects) startDecision(s *Session, d *decision, one bool) (other *decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other = p.decisions[s]; other != nil {
		return other
	}
	if p.decisions == nil {
		p.decisions = make(map[*Session]*decision)
	}
	if one {
		p.decisions[s] = d
	}
	return nil
}

// Forget makes the session's next request decide again, after changed roots or closing.
func (p *Projects) Forget(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.decisions[s]; d != nil {
		d.stale.Store(true)
	}
	delete(p.decisions, s)
}

// NoProjectReason returns the reason why a session has no project.
func (p *Projects) NoProjectReason(s *Session) string {
	p.mu.Lock()
	d := p.decisions[s]
	p.mu.Unlock()
	if d != nil {
		select {
		case <-d.done:
			return d.reason
		default:
		}
	}
	return noRoots(s)
}

func noRoots(s *Session) string {
	switch at := s.Location(); {
	case s.Anonymous():
		return "over HTTP, only a client with a token may choose the folder; set gateway.auth_token or connect over stdio"
	case at.Folder != "":
		return fmt.Sprintf("the client sent no roots and its working directory %s is not in a repository", QuotePath(at.Folder))
	case s.Stateless():
		return "over HTTP without a session, the URL must name it: /mcp?project=PATH (requires gateway.auth_token)"
	case s.Transport() == "http":
		return "the client sent no roots and the URL names no project: /mcp?project=PATH (requires gateway.auth_token)"
	}
	return "the client sent no roots and has no working directory"
}

// findProject returns the client's project folder. final is false if the client could not
// be asked yet.
func findProject(ctx context.Context, x *Request) (folder string, final bool, err error) {
	s := x.Session()
	if s.Anonymous() { // any local user could claim any root
		return "", true, errors.New(noRoots(s))
	}
	at := s.Location()
	if at.IsProject {
		folder, err = ProjectFolder(at.Folder)
		return folder, true, err
	}
	final = true
	if x.HasCapability("roots") && !s.Stateless() {
		if final = x.CanAsk(); final {
			if uri, ok := firstRoot(ctx, x); ok {
				folder, err = folderFromURI(uri)
				return folder, true, err
			}
		}
	}
	if at.Folder == "" || !inRepository(at.Folder) {
		return "", final, errors.New(noRoots(s))
	}
	folder, err = ProjectFolder(at.Folder)
	return folder, final, err
}

func firstRoot(ctx context.Context, x *Request) (uri string, ok bool) {
	if x.Modern() == nil { // no time limit for a stateless client
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rootsTimeout)
		defer cancel()
	}
	reply, err := x.Ask(ctx, "roots/list", nil)
	if err != nil || reply.Error != nil {
		return "", false
	}
	for root := range rawjson.Elements(rawjson.Get(reply.Result, "roots")) {
		return rawjson.String(rawjson.Get(root, "uri"))
	}
	return "", false
}

// ProjectOf returns the project around a folder, or "".
func ProjectOf(folder string) string {
	if !inRepository(folder) {
		return ""
	}
	own, err := ProjectFolder(folder)
	if err != nil {
		return ""
	}
	return own
}

// maxPath is in bytes.
const maxPath = 4096

func folderFromURI(uri string) (string, error) {
	if len(uri) > 3*maxPath {
		return "", fmt.Errorf("the client's first root is longer than %d bytes", maxPath)
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", fmt.Errorf("the client's first root %s is not a file:// URI of a local folder", QuotePath(uri))
	}
	path := u.Path
	if filepath.Separator == '\\' { // file:///C:/work
		path = strings.TrimPrefix(path, "/")
	}
	return ProjectFolder(filepath.FromSlash(path))
}

// ProjectFolder returns the canonical path of a project, or an error if it is invalid.
func ProjectFolder(path string) (string, error) {
	switch {
	case len(path) > maxPath:
		return "", fmt.Errorf("the project path is longer than %d bytes", maxPath)
	case !utf8.ValidString(path) || strings.ContainsFunc(path, func(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) }):
		return "", fmt.Errorf("the project path %s has control characters", QuotePath(path))
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("the project path %s is not absolute", QuotePath(path))
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("the project folder %s does not exist", QuotePath(path))
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", QuotePath(path))
	}
	if filepath.Dir(real) == real {
		return "", fmt.Errorf("%s is the root of the file system, not a project", QuotePath(path))
	}
	return real, nil
}

// QuotePath returns a quoted, shortened path for a message.
func QuotePath(path string) string {
	if len(path) > 200 {
		path = path[:200] + "…"
	}
	return fmt.Sprintf("%q", path)
}

var repositoryEntries = []string{".git", ".hg", ".jj", ".svn"}

func inRepository(folder string) bool {
	if !filepath.IsAbs(folder) {
		return false
	}
	for at := filepath.Clean(folder); ; at = filepath.Dir(at) {
		for _, name := range repositoryEntries {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				return true
			}
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}
