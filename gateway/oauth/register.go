package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// identify returns Goblin's client for an authorization server: the config's, a metadata
// document, an earlier registration, or a new one. again skips the earlier one, which the
// server no longer knows. A client for logins by device also permits redirects.
func identify(ctx context.Context, h *http.Client, o Options, p discovery, redirect string, before *Login, device, again bool) (client, string, error) {
	methods := p.meta.TokenEndpointAuthMethodsSupported
	basic := len(methods) == 0 || slices.Contains(methods, "client_secret_basic")
	switch {
	case o.ClientID != "":
		secret, err := o.secret(ctx)
		return client{ID: o.ClientID, Basic: basic}, secret, err
	case o.MetadataURL != "" && p.meta.ClientIDMetadataDocumentSupported:
		return client{ID: o.MetadataURL}, "", nil
	case !again && before != nil && before.Issuer == p.meta.Issuer && before.Client.Registered &&
		slices.Contains(before.Client.Redirects, redirect) && (before.Client.Device || !device):
		return before.Client, before.ClientSecret, nil
	case p.meta.RegistrationEndpoint == "":
		return client{}, "", fmt.Errorf("the authorization server %s registers no clients; create one there and set oauth.client_id", p.meta.Issuer)
	}
	method := "none"
	if len(methods) > 0 && !slices.Contains(methods, "none") {
		method = methods[0]
		if basic {
			method = "client_secret_basic"
		}
	}
	grants := []string{"authorization_code", "refresh_token"}
	if device {
		grants = append(grants, deviceGrant)
	}
	got, err := oauthex.RegisterClient(ctx, p.meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: "Goblin", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: method, ApplicationType: "native",
		GrantTypes: grants, ResponseTypes: []string{"code"},
	}, h)
	if err != nil {
		return client{}, "", fmt.Errorf("register Goblin at the authorization server %s: %s; create a client there and set oauth.client_id", p.meta.Issuer, reason(err))
	}
	if got.TokenEndpointAuthMethod != "" {
		method = got.TokenEndpointAuthMethod
	}
	return client{ID: got.ClientID, Registered: true, Redirects: []string{redirect}, Basic: method == "client_secret_basic", Device: device}, got.ClientSecret, nil
}

// reason returns why a registration failed. The library's error contains the whole
// response, which may include a secret.
func reason(err error) string {
	var (
		refused *oauthex.ClientRegistrationError
		network *url.Error
	)
	switch {
	case errors.As(err, &refused):
		return truncate(refused.Error())
	case errors.As(err, &network):
		return network.Err.Error()
	}
	if _, status, ok := strings.Cut(err.Error(), "registration failed with status "); ok {
		status, _, _ = strings.Cut(status, ":")
		return "HTTP status " + truncate(status)
	}
	return "invalid answer to the registration"
}

func (c client) authStyle() oauth2.AuthStyle {
	if c.Basic {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}
