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

// discovery is the result of discover: where to log in for a server.
type discovery struct {
	resource string
	scopes   []string
	meta     *oauthex.AuthServerMeta
	device   string // the endpoint of logins by device; "": there are none
}

// probes are asked without a token until one is refused: some servers let the first
// pass and answer 401 to the next only.
var probes = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"goblin","version":"1"}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"goblin","version":"1"}}}}`,
}

// challenge asks a server for nothing of value and returns what it says of logins, if it
// refuses that.
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
			return "", nil, false, fmt.Errorf("the server cannot be asked: %w", StripURL(err))
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

// emptyParameter is a parameter without a value, such as the scope where a server has none. The
// library refuses all of a challenge for it.
var emptyParameter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\w-]+=""\s*,?`) })

// parseChallenges returns the metadata URL, scopes and error code of the challenges in a response.
func parseChallenges(head http.Header) (metadata string, scopes []string, code string) {
	var values []string
	for _, v := range head.Values("WWW-Authenticate") {
		values = append(values, emptyParameter().ReplaceAllString(v, ""))
	}
	all, err := oauthex.ParseWWWAuthenticate(values)
	if err != nil {
		return "", nil, "" // the well-known places may still tell
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

// limitScopes returns the scopes that are plausible. They become a part of a URL.
func limitScopes(scopes []string) []string {
	scopes = slices.DeleteFunc(scopes, func(s string) bool { return s == "" || len(s) > 200 || truncate(s) != s })
	return scopes[:min(len(scopes), 100)]
}

// discover finds where to log in for a server: its own metadata (RFC 9728) by the
// challenge or the well-known places, then that of the authorization server (RFC 8414,
// OpenID). A server of the revision 2025-03-26 is its own authorization server.
// Of several authorization servers it takes the preferred one, if that is not "".
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
			if at.url == metadata && fault == nil { // of the server itself; the rest is its whole origin
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
		return discovery{}, fmt.Errorf("the server's metadata cannot be used: %s%s", truncate(StripURL(fault).Error()), hintBadServer)
	}
	legacy := issuer == ""
	if legacy {
		if issuer, err = origin(o.URL); err != nil {
			return discovery{}, err
		}
	}
	issuer = truncate(issuer)
	if !isPlainIssuer(issuer) {
		return discovery{}, fmt.Errorf("the server names the authorization server %q, which is no plain URL%s", issuer, hintBadServer)
	}
	if o.Issuer != "" && !sameIssuer(issuer, o.Issuer) {
		return discovery{}, fmt.Errorf("the server's authorization server is %s, but oauth.issuer is %s", issuer, o.Issuer)
	}
	err = p.ask(ctx, h, issuer, legacy && refused)
	if err != nil && legacy && !refused {
		err = errors.New("the server asks for no login, and names no place for one")
	}
	return p, err
}

// ask gets the metadata of the authorization server.
func (p *discovery) ask(ctx context.Context, h *http.Client, issuer string, legacy bool) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestLimit, timeoutError(fmt.Sprintf("no answer within %v", requestLimit)))
	defer cancel()
	asked := *h
	seen := &recordingTransport{RoundTripper: h.Transport}
	asked.Transport, asked.Timeout = seen, 0 // its end would look as any other cancellation
	p.meta, err = auth.GetAuthServerMetadata(ctx, issuer, &asked)
	var guarded egress.RefusedError
	switch {
	case errors.As(seen.fault, &guarded):
		return fmt.Errorf("the authorization server %s cannot be used: %w%s", issuer, guarded, hintBadServer)
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("the authorization server %s cannot be reached (try again later): %w", issuer, context.Cause(ctx))
	case err != nil && seen.fault != nil:
		return fmt.Errorf("the authorization server %s cannot be reached (try again later): %w", issuer, seen.fault)
	case err != nil:
		return fmt.Errorf("the metadata of the authorization server %s cannot be used: %s%s", issuer, truncate(StripURL(err).Error()), hintBadServer)
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
		return fmt.Errorf("the authorization server %s has no PKCE with S256, without which a login is not safe%s", issuer, hintBadServer)
	case p.meta.AuthorizationEndpoint == "" || p.meta.TokenEndpoint == "":
		return fmt.Errorf("the metadata of the authorization server %s names no endpoints for a login%s", issuer, hintBadServer)
	}
	var more struct {
		Device string `json:"device_authorization_endpoint"` // RFC 8628, which the library does not know
	}
	_ = json.NewDecoder(&seen.body).Decode(&more) // the library has read the same
	p.device = more.Device
	for name, address := range map[string]string{
		"token_endpoint": p.meta.TokenEndpoint, "revocation_endpoint": p.meta.RevocationEndpoint,
		"registration_endpoint": p.meta.RegistrationEndpoint, "device_authorization_endpoint": p.device,
	} {
		if address != "" && !isConfidential(address) {
			return fmt.Errorf("the %s of the authorization server %s is not https, so what is sent there would not stay secret%s", name, issuer, hintBadServer)
		}
	}
	return nil
}

// hintLoginAgain is the fix after a failed login.
const hintLoginAgain = "; begin the login anew"

// hintBadServer is the fix if an authorization server does not work.
const hintBadServer = `. It has to be mended there; a token that you get in another way can stand in the config, as headers: {Authorization: "Bearer ${TOKEN}"}`

type metadataLocation struct{ url, resource string }

// metadataLocations are those of RFC 9728 §3, the one that the server named first.
func metadataLocations(named, server string) []metadataLocation {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil
	}
	base := u.Scheme + "://" + u.Host
	const known = "/.well-known/oauth-protected-resource"
	resources := resources(server)
	var all []metadataLocation
	for _, r := range resources { // a resource may be the whole origin, with or without a slash
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

// StripURL takes the URL, which may hold secrets, out of an error of net/http.
func StripURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
