package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"goblin/gateway/egress"
)

type discovery struct {
	resource string
	scopes   []string
	meta     *oauthex.AuthServerMeta
	device   string // endpoint for logins by device, or ""
}

// probes are sent without a token until one is refused. Some servers accept the first and
// answer 401 only to the next.
var probes = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"goblin","version":"1"}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"goblin","version":"1"}}}}`,
}

func challenge(ctx context.Context, h *http.Client, o Options) (metadata string, scopes []string, refused bool, err error) {
	for i, body := range probes {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL, bytes.NewReader([]byte(body)))
		if err != nil {
			return "", nil, false, errors.New("the url of the server is not valid")
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("User-Agent", "goblin/"+o.Version)
		if i > 0 {
			req.Header.Set("MCP-Protocol-Version", "2026-07-28")
			req.Header.Set("Mcp-Method", "tools/list")
		}
		resp, err := h.Do(req)
		if err != nil {
			return "", nil, false, fmt.Errorf("cannot reach the server: %w", StripURL(err))
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
			metadata, scopes, _ := parseChallenges(resp.Header)
			return metadata, scopes, true, nil
		}
	}
	return "", nil, false, nil
}

// emptyParameter matches parameters without a value, such as an empty scope. The library
// would reject the whole challenge.
var emptyParameter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\w-]+=""\s*,?`) })

func parseChallenges(head http.Header) (metadata string, scopes []string, code string) {
	var values []string
	for _, v := range head.Values("WWW-Authenticate") {
		values = append(values, emptyParameter().ReplaceAllString(v, ""))
	}
	all, err := oauthex.ParseWWWAuthenticate(values)
	if err != nil {
		return "", nil, "" // well-known locations may still work
	}
	for _, c := range all {
		if c.Scheme != "bearer" {
			continue
		}
		if metadata == "" {
			metadata = c.Params["resource_metadata"]
		}
		if code == "" {
			code = c.Params["error"]
		}
		if s := limitScopes(strings.Fields(c.Params["scope"])); len(s) > 0 && scopes == nil {
			scopes = s
		}
	}
	return metadata, scopes, code
}

// limitScopes returns the plausible scopes. They become part of a URL.
func limitScopes(scopes []string) []string {
	scopes = slices.DeleteFunc(scopes, func(s string) bool { return s == "" || len(s) > 200 || truncate(s) != s })
	return scopes[:min(len(scopes), 100)]
}

// discover determines where to log in for a server. It reads the server's metadata (RFC
// 9728) from the challenge or a well-known location. The authorization server's metadata
// follow (RFC 8414, OpenID). A server of 2025-03-26 is its own authorization server.
// preferred is chosen if the server names several.
func discover(ctx context.Context, h *http.Client, o Options, preferred string) (discovery, error) {
	metadata, scopes, refused, err := challenge(ctx, h, o)
	if err != nil {
		return discovery{}, err
	}
	p := discovery{resource: o.URL, scopes: scopes}
	issuer, fault := "", error(nil)
	for _, at := range metadataLocations(metadata, o.URL) {
		found, err := oauthex.GetProtectedResourceMetadata(ctx, at.url, at.resource, h)
		if err != nil {
			if at.url == metadata && fault == nil { // the server's own; others are for its origin
				fault = err
			}
			continue
		}
		if len(found.AuthorizationServers) == 0 {
			return discovery{}, errors.New("the server's metadata names no authorization server" + hintBadServer)
		}
		p.resource, issuer = found.Resource, found.AuthorizationServers[0]
		if i := slices.IndexFunc(found.AuthorizationServers, func(s string) bool { return sameIssuer(s, preferred) }); i >= 0 {
			issuer = found.AuthorizationServers[i]
		}
		if p.scopes == nil {
			p.scopes = limitScopes(found.ScopesSupported)
		}
		break
	}
	if issuer == "" && fault != nil {
		return discovery{}, fmt.Errorf("unusable server metadata: %s%s", truncate(StripURL(fault).Error()), hintBadServer)
	}
	legacy := issuer == ""
	if legacy {
		if issuer, err = origin(o.URL); err != nil {
			return discovery{}, err
		}
	}
	issuer = truncate(issuer)
	if !isPlainIssuer(issuer) {
		return discovery{}, fmt.Errorf("the server names the authorization server %q, which is not a plain URL%s", issuer, hintBadServer)
	}
	if o.Issuer != "" && !sameIssuer(issuer, o.Issuer) {
		return discovery{}, fmt.Errorf("the server's authorization server is %s, but oauth.issuer is %s", issuer, o.Issuer)
	}
	err = p.ask(ctx, h, issuer, legacy && refused)
	if err != nil && legacy && !refused {
		err = errors.New("the server requires no login and names no authorization server")
	}
	return p, err
}

func (p *discovery) ask(ctx context.Context, h *http.Client, issuer string, legacy bool) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestLimit, timeoutError(fmt.Sprintf("no answer within %v", requestLimit)))
	defer cancel()
	asked := *h
	seen := &recordingTransport{RoundTripper: h.Transport}
	asked.Transport, asked.Timeout = seen, 0 // its timeout would look like any other cancellation
	p.meta, err = auth.GetAuthServerMetadata(ctx, issuer, &asked)
	var guarded egress.RefusedError
	switch {
	case errors.As(seen.fault, &guarded):
		return fmt.Errorf("unusable authorization server %s: %w%s", issuer, guarded, hintBadServer)
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("cannot reach the authorization server %s (try again later): %w", issuer, context.Cause(ctx))
	case err != nil && seen.fault != nil:
		return fmt.Errorf("cannot reach the authorization server %s (try again later): %w", issuer, seen.fault)
	case err != nil:
		return fmt.Errorf("unusable metadata of the authorization server %s: %s%s", issuer, truncate(StripURL(err).Error()), hintBadServer)
	case p.meta == nil && !legacy:
		return fmt.Errorf("the authorization server %s has no metadata%s", issuer, hintBadServer)
	case p.meta == nil:
		seen.body.Reset()
		// 2025-03-26, basic/authorization, fallbacks for servers without metadata.
		p.meta = &oauthex.AuthServerMeta{
			Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token",
			RegistrationEndpoint: issuer + "/register", CodeChallengeMethodsSupported: []string{"S256"},
		}
	case !slices.Contains(p.meta.CodeChallengeMethodsSupported, "S256"):
		return fmt.Errorf("the authorization server %s does not support PKCE with S256, which a safe login requires%s", issuer, hintBadServer)
	case p.meta.AuthorizationEndpoint == "" || p.meta.TokenEndpoint == "":
		return fmt.Errorf("the metadata of the authorization server %s lacks the endpoints for logins%s", issuer, hintBadServer)
	}
	var more struct {
		Device string `json:"device_authorization_endpoint"` // RFC 8628; unknown to the library
	}
	_ = json.NewDecoder(&seen.body).Decode(&more) // the library parsed the same text
	p.device = more.Device
	for name, address := range map[string]string{
		"token_endpoint": p.meta.TokenEndpoint, "revocation_endpoint": p.meta.RevocationEndpoint,
		"registration_endpoint": p.meta.RegistrationEndpoint, "device_authorization_endpoint": p.device,
	} {
		if address != "" && !isConfidential(address) {
			return fmt.Errorf("the %s of the authorization server %s is not https, so tokens would not stay secret%s", name, issuer, hintBadServer)
		}
	}
	return nil
}

const hintLoginAgain = "; start the login again"

const hintBadServer = `; ask its operator to fix it, or set a token in the config: headers: {Authorization: "Bearer ${TOKEN}"}`

type metadataLocation struct{ url, resource string }

// metadataLocations returns the locations of RFC 9728 section 3, the named one first.
func metadataLocations(named, server string) []metadataLocation {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil
	}
	base := u.Scheme + "://" + u.Host
	const known = "/.well-known/oauth-protected-resource"
	resources := resources(server)
	var all []metadataLocation
	for _, r := range resources { // a resource may be the origin, with or without a slash
		if named != "" {
			all = append(all, metadataLocation{named, r})
		}
	}
	if path := strings.Trim(u.EscapedPath(), "/"); path != "" {
		for _, r := range resources[:len(resources)-2] {
			all = append(all, metadataLocation{base + known + "/" + path, r})
		}
	}
	return append(all, metadataLocation{base + known, base}, metadataLocation{base + known, base + "/"}, metadataLocation{base + known, server})
}

// StripURL removes the URL, which may contain secrets, from an error of net/http.
func StripURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
