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

// OfficialURL is the URL of the registry of the MCP project.
const OfficialURL = "https://registry.modelcontextprotocol.io"

const (
	limitTime = 30 * time.Second // of one question to the registry, with all pages
	maxBody   = 16 << 20         // of one answer
	maxPages  = 30
	pageSize  = 100
)

// Client asks one registry.
type Client struct {
	BaseURL string // of its URL
	Version string // Goblin's
	Cache   *Cache // nil for none

	connect   sync.Once
	transport http.RoundTripper
}

// do sends a request to the registry, or to a host that the registry names. A registry on
// the internet names no private addresses. A client without a registry has no such rule.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	c.connect.Do(func() {
		c.transport = http.DefaultTransport
		if c.BaseURL != "" {
			c.transport = egress.New(c.BaseURL)
		}
	})
	return (&http.Client{Transport: c.transport, CheckRedirect: safeRedirect}).Do(req)
}

// ErrNotFound says that the registry has no such server, or no such version of it.
var ErrNotFound = errors.New("is not in the registry")

// errUnavailable marks failures after which an older response is better than none.
var errUnavailable = errors.New("the registry is out of reach")

// SearchResult is a page of a search's results.
type SearchResult struct {
	Servers []Entry `json:"servers"`
	HasMore bool    `json:"more,omitempty"` // there are others
	// Invalid counts entries that were left out because they are not as they have to be.
	Invalid int `json:"invalid,omitempty"`
	// Cached is when the registry said so, if it could not be asked now.
	Cached time.Time `json:"cached,omitzero"`
}

// Search finds the servers, in their latest versions, whose names, titles or descriptions
// have all words, most servers first.
func (c *Client) Search(ctx context.Context, words []string, most int) (*SearchResult, error) {
	ctx, cancel := context.WithTimeout(ctx, limitTime)
	defer cancel()
	// The registry knows one text, which names have to contain: the longest word leaves least.
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
			return nil, fmt.Errorf("%s: gives the same page again and again", c.BaseURL)
		}
		cursors[next], cursor = true, next
	}
}

// add adds the entries of a page, and tells where the next one is.
func (f *SearchResult) add(a answer, seen map[string]bool, words []string, asked string, most int) (next string, err error) {
	var page struct {
		Servers  []json.RawMessage `json:"servers"`
		Metadata struct {
			Next string `json:"nextCursor"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(a.body, &page); err != nil {
		return "", fmt.Errorf("its answer is no list of servers: %w", err)
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
		return "", nil // whatever the cursor says
	}
	return page.Metadata.Next, nil
}

// matches reports whether an entry has all words. The word that the registry was asked for may be in a text
// that only it has.
func matches(e Entry, words []string, asked string) bool {
	text := strings.ToLower(e.Name + "\n" + e.Title + "\n" + e.Description)
	for _, w := range words {
		if w != asked && !strings.Contains(text, strings.ToLower(w)) {
			return false
		}
	}
	return true
}

// Get is a version of a server, "" for the latest. cached is when the registry said so, if
// it could not be asked now. A name without a slash is looked for, and has to be that of
// one server only.
func (c *Client) Get(ctx context.Context, name, version string) (e Entry, cached time.Time, err error) {
	if !strings.Contains(name, "/") {
		if name, err = c.fullName(ctx, name); err != nil {
			return Entry{}, time.Time{}, err
		}
	}
	if len(name) > maxName || !serverName().MatchString(name) {
		return Entry{}, time.Time{}, fmt.Errorf("%q is no name of a server: those look like io.github.user/weather", name)
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
		return Entry{}, time.Time{}, fmt.Errorf("%s: asked about %s, it told of %q", c.BaseURL, name, e.Name)
	}
	if a.cached {
		cached = a.at
	}
	return e, cached, nil
}

// AmbiguousError says that several servers have a name.
type AmbiguousError struct {
	Name  string
	Names []string // in full; none: there is no such server
}

func (e *AmbiguousError) Error() string {
	if len(e.Names) == 0 {
		return fmt.Sprintf("there is no server %q in the registry; \"goblin registry search\" finds names", e.Name)
	}
	return fmt.Sprintf("several servers are called %q: %s", e.Name, strings.Join(e.Names, ", "))
}

func (e *AmbiguousError) Unwrap() error { return ErrNotFound }

// fullName returns the full name of the only server whose name ends in a word.
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

// answer is a body, and when it came.
type answer struct {
	body   []byte
	at     time.Time
	cached bool // it is old, because the registry could not be asked
}

// ErrInvalidURL is the error of a registry whose URL is invalid.
var ErrInvalidURL = errors.New("is no URL such as")

func (c *Client) valid() bool {
	base, err := url.Parse(c.BaseURL)
	return err == nil && base.Host != "" && (base.Scheme == "https" || base.Scheme == "http") && base.RawQuery == "" && base.Fragment == ""
}

// ask gets one answer: a young one of the cache, that of the registry, or else an old one.
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

// safeRedirect follows an answer elsewhere unless it is one too many, or loses encryption.
func safeRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > 3 || via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("redirects too often, or to where nothing is encrypted")
	}
	return nil
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
		return nil, fmt.Errorf("ask %s: %w: %w", c.BaseURL, errUnavailable, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%w (HTTP 404 of %s)", ErrNotFound, c.BaseURL)
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests:
		return nil, fmt.Errorf("%w: %s says HTTP %d", errUnavailable, c.BaseURL, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s says HTTP %d: is it a registry of MCP servers (API v0.1)?", c.BaseURL, resp.StatusCode)
	case err != nil:
		return nil, fmt.Errorf("read the answer of %s: %w: %w", c.BaseURL, errUnavailable, err)
	case len(body) > maxBody:
		return nil, fmt.Errorf("%s: its answer is larger than %d MiB", c.BaseURL, maxBody>>20)
	case !json.Valid(body):
		return nil, fmt.Errorf("%s: its answer is no JSON: is it a registry of MCP servers (API v0.1)?", c.BaseURL)
	}
	return body, nil
}
