package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// identify decides who Goblin is for an authorization server: the client of the
// config, a metadata document, the one that was registered before, or a new one.
// again leaves out the one of before, which the server has forgotten.
func identify(ctx context.Context, h *http.Client, o Options, p place, redirect string, before *Login, again bool) (client, string, error) {
	methods := p.meta.TokenEndpointAuthMethodsSupported
	basic := len(methods) == 0 || slices.Contains(methods, "client_secret_basic")
	switch {
	case o.ClientID != "":
		return client{ID: o.ClientID, Basic: basic}, o.ClientSecret, nil
	case o.MetadataURL != "" && p.meta.ClientIDMetadataDocumentSupported:
		return client{ID: o.MetadataURL}, "", nil
	case !again && before != nil && before.Issuer == p.meta.Issuer && before.Client.Registered && slices.Contains(before.Client.Redirects, redirect):
		return before.Client, before.ClientSecret, nil
	case p.meta.RegistrationEndpoint == "":
		return client{}, "", fmt.Errorf("the authorization server %s registers no clients: create one there, and set oauth.client_id", p.meta.Issuer)
	}
	method := "none"
	if len(methods) > 0 && !slices.Contains(methods, "none") {
		method = methods[0]
		if basic {
			method = "client_secret_basic"
		}
	}
	got, err := oauthex.RegisterClient(ctx, p.meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: "Goblin", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: method, ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}, h)
	if err != nil {
		var refused *oauthex.ClientRegistrationError
		if errors.As(err, &refused) {
			return client{}, "", fmt.Errorf("the authorization server %s does not register Goblin: %w", p.meta.Issuer, refused)
		}
		return client{}, "", fmt.Errorf("register at the authorization server %s: %w", p.meta.Issuer, plain(err))
	}
	if got.TokenEndpointAuthMethod != "" {
		method = got.TokenEndpointAuthMethod
	}
	return client{ID: got.ClientID, Registered: true, Redirects: []string{redirect}, Basic: method == "client_secret_basic"}, got.ClientSecret, nil
}

func (c client) style() oauth2.AuthStyle {
	if c.Basic {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}
