package mcpregistry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"goblin/gateway/egress"
)

// OfficialURL is the URL of the official MCP registry.
const OfficialURL = "https://registry.modelcontextprotocol.io"

const (
	limitTime = 30 * time.Second // for one query with all its pages
	maxBody   = 16 << 20         // bytes of one answer
	maxPages  = 30
	pageSize  = 100
)

// badURLFix is the fix for answers that are not those of a registry.
const badURLFix = "check that it is an MCP registry (API v0.1)"

// Client queries one registry. Its methods are safe for concurrent use.
type Client struct {
	BaseURL string // of its URL
	Version string // Goblin's version
	Cache   *Cache // nil disables caching

	connect   sync.Once
	transport http.RoundTripper
}

// do sends a request. A registry on the internet must not refer to private addresses.
// Without a BaseURL all addresses are allowed.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	c.connect.Do(func() {
		c.transport = http.DefaultTransport
		if c.BaseURL != "" {
			c.transport = egress.New(c.BaseURL)
		}
	})
	return (&http.Client{Transport: c.transport, CheckRedirect: safeRedirect}).Do(req)
}

// ErrNotFound means that the registry doesn't have the server or the version.
var ErrNotFound = errors.New("is not in the registry")

// errUnavailable marks failures after which an old answer is used.
var errUnavailable = errors.New("registry unavailable")

// SearchResult is the result of a search.
type SearchResult struct {
	Servers []Entry `json:"servers"`
	HasMore bool    `json:"more,omitempty"` // more results exist
	// Invalid is the number of skipped invalid entries.
	Invalid int `json:"invalid,omitempty"`
	// Cached is the time of the oldest cached answer that replaced an unavailable
	// registry, or zero.
	Cached time.Time `json:"cached,omitzero"`
}

// Search returns at most most servers, in their latest versions, whose names, titles or
// descriptions contain all words.
func (c *Client) Search(ctx context.Context, words []string, most int) (*SearchResult, error) {
	ctx, cancel := context.WithTimeout(ctx, limitTime)
	defer cancel()
	// The registry searches names for one text. The longest word has the fewest hits.
	longest := slices.MaxFunc(append([]string{""}, words...), func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	found := &SearchResult{Servers: []Entry{}}
	seen := map[string]bool{}
	cursors := map[string]bool{}
	for cursor, page := "", 0; ; page++ {
		if page == maxPages {
			found.HasMore = true
			return found, nil
		}
		q := url.Values{"limit": {strconv.Itoa(pageSize)}, "search": {longest}, "version": {"latest"}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		a, err := c.ask(ctx, "/v0.1/servers?"+q.Encode())
		if errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("%s returned HTTP 404; %s", c.BaseURL, badURLFix)
		}
		if err != nil {
			return nil, err
		}
		next, err := found.add(a, seen, words, longest, most)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.BaseURL, err)
		}
		switch {
		case next == "" || found.HasMore:
			return found, nil
		case cursors[next]:
			return nil, fmt.Errorf("%s: returns the same page repeatedly", c.BaseURL)
		}
		cursors[next], cursor = true, next
	}
}

func (f *SearchResult) add(a answer, seen map[string]bool, words []string, asked string, most int) (next string, err error) {
	var page struct {
		Servers  []json.RawMessage `json:"servers"`
		Metadata struct {
			Next string `json:"nextCursor"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(a.body, &page); err != nil {
		return "", errors.New("the answer is not a list of servers; " + badURLFix)
	}
	if a.cached && (f.Cached.IsZero() || a.at.Before(f.Cached)) {
		f.Cached = a.at
	}
	for _, raw := range page.Servers {
		e, err := read(raw)
		switch {
		case err != nil:
			f.Invalid++
			continue
		case seen[e.Name] || e.Status == "deleted" || !matches(e, words, asked):
			continue
		case len(f.Servers) == most:
			f.HasMore = true
			return "", nil
		}
		seen[e.Name] = true
		f.Servers = append(f.Servers, e)
	}
	if len(page.Servers) == 0 {
		return "", nil // ignore the cursor of an empty page
	}
	return page.Metadata.Next, nil
}

// matches skips asked, which the registry already matched.
func matches(e Entry, words []string, asked string) bool {
	text := strings.ToLower(e.Name + "\n" + e.Title + "\n" + e.Description)
	for _, w := range words {
		if w != asked && !strings.Contains(text, strings.ToLower(w)) {
			return false
		}
	}
	return true
}

// Get returns a version of a server; "" is the latest. cached is the time of the answer
// if the registry is unavailable. A name without a slash must be unique in the registry.
func (c *Client) Get(ctx context.Context, name, version string) (e Entry, cached time.Time, err error) {
	if !strings.Contains(name, "/") {
		if name, err = c.fullName(ctx, name); err != nil {
			return Entry{}, time.Time{}, err
		}
	}
	if len(name) > maxName || !serverName().MatchString(name) {
		return Entry{}, time.Time{}, fmt.Errorf("%q is not a server name; use one like io.github.user/weather", name)
	}
	ctx, cancel := context.WithTimeout(ctx, limitTime)
	defer cancel()
	a, err := c.ask(ctx, "/v0.1/servers/"+url.PathEscape(name)+"/versions/"+url.PathEscape(cmp.Or(version, "latest")))
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("%s %w %s", strings.TrimSpace(name+" "+version), ErrNotFound, c.BaseURL)
		}
		return Entry{}, time.Time{}, err
	}
	if e, err = read(a.body); err != nil {
		return Entry{}, time.Time{}, fmt.Errorf("%s: the answer about %s %w", c.BaseURL, name, err)
	}
	if e.Name != name {
		return Entry{}, time.Time{}, fmt.Errorf("%s: asked for %s, got %q", c.BaseURL, name, e.Name)
	}
	if a.cached {
		cached = a.at
	}
	return e, cached, nil
}

// AmbiguousError means that a short name matches several servers, or none.
type AmbiguousError struct {
	Name  string
	Names []string // full names
}

func (e *AmbiguousError) Error() string {
	if len(e.Names) == 0 {
		return fmt.Sprintf("no server %q in the registry; find names with \"goblin registry search\"", e.Name)
	}
	return fmt.Sprintf("%q is ambiguous: %s", e.Name, strings.Join(e.Names, ", "))
}

func (e *AmbiguousError) Unwrap() error { return ErrNotFound }

func (c *Client) fullName(ctx context.Context, word string) (string, error) {
	const most = 1000
	found, err := c.Search(ctx, []string{word}, most)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range found.Servers {
		if _, last, _ := strings.Cut(e.Name, "/"); strings.EqualFold(last, word) {
			names = append(names, e.Name)
		}
	}
	if len(names) != 1 {
		return "", &AmbiguousError{word, names}
	}
	return names[0], nil
}

type answer struct {
	body   []byte
	at     time.Time
	cached bool // old, because the registry is unavailable
}

// ErrInvalidURL means that the registry's URL is invalid.
var ErrInvalidURL = errors.New("is not a URL like")

func (c *Client) valid() bool {
	base, err := url.Parse(c.BaseURL)
	return err == nil && base.Host != "" && (base.Scheme == "https" || base.Scheme == "http") && base.RawQuery == "" && base.Fragment == ""
}

// ask returns a fresh cached answer, the registry's, or an old cached one if the registry
// is unavailable.
func (c *Client) ask(ctx context.Context, path string) (answer, error) {
	if !c.valid() {
		return answer{}, fmt.Errorf("the registry %q %w %s", c.BaseURL, ErrInvalidURL, OfficialURL)
	}
	to := strings.TrimSuffix(c.BaseURL, "/") + path
	kept, old := c.Cache.load(to)
	if kept != nil && !old {
		return answer{body: kept.body, at: kept.at}, nil
	}
	body, err := c.fetch(ctx, to)
	switch {
	case err == nil:
		c.Cache.store(to, body)
		return answer{body: body, at: time.Now()}, nil
	case kept != nil && errors.Is(err, errUnavailable):
		return answer{body: kept.body, at: kept.at, cached: true}, nil
	}
	return answer{}, err
}

func safeRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > 3 || via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("too many redirects, or a redirect from https to http")
	}
	return nil
}

// timeoutError replaces an error after the time limit.
func timeoutError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err
}

func (c *Client) fetch(ctx context.Context, to string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "goblin/"+c.Version)
	resp, err := c.do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return nil, context.Canceled
		}
		return nil, fmt.Errorf("query %s: %w: %w", c.BaseURL, errUnavailable, timeoutError(ctx, err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%w (HTTP 404 of %s)", ErrNotFound, c.BaseURL)
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests:
		return nil, fmt.Errorf("%w: %s returned HTTP %d", errUnavailable, c.BaseURL, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s returned HTTP %d; %s", c.BaseURL, resp.StatusCode, badURLFix)
	case err != nil:
		return nil, fmt.Errorf("read the answer of %s: %w: %w", c.BaseURL, errUnavailable, timeoutError(ctx, err))
	case len(body) > maxBody:
		return nil, fmt.Errorf("%s: answer larger than %d MiB", c.BaseURL, maxBody>>20)
	case !json.Valid(body):
		return nil, fmt.Errorf("%s: the answer is not JSON; %s", c.BaseURL, badURLFix)
	}
	return body, nil
}
