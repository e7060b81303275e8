package oauth

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"
)

func TestAnAuthorizationServerThatIsNotSafeIsNotUsed(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for name, tt := range map[string]struct {
		change object // nil removes a member
		want   string
	}{
		"as it should be":        {nil, ""},
		"codes that can be used": {object{"code_challenge_methods_supported": []string{"plain"}}, "does not support PKCE with S256, which a safe login requires"},
		"no page":                {object{"authorization_endpoint": nil}, "lacks the endpoints for logins"},
		"no tokens":              {object{"token_endpoint": nil}, "lacks the endpoints for logins"},
		"tokens in the clear":    {object{"token_endpoint": "http://a.example/token"}, "token_endpoint"},
		"revocation in clear":    {object{"revocation_endpoint": "http://a.example/revoke"}, "the revocation_endpoint of the authorization server"},
		"registration in clear":  {object{"registration_endpoint": "http://a.example/register"}, "registration_endpoint"},
		"devices in the clear":   {object{"device_authorization_endpoint": "http://a.example/device"}, "the device_authorization_endpoint of the authorization server"},
		"another one":            {object{"issuer": "https://b.example"}, "unusable metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var meta object
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(meta)
			}))
			t.Cleanup(web.Close)
			meta = object{
				"issuer": web.URL, "authorization_endpoint": web.URL + "/authorize", "token_endpoint": web.URL + "/token",
				"device_authorization_endpoint": web.URL + "/device", "code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"},
			}
			maps.Copy(meta, tt.change)
			maps.DeleteFunc(meta, func(_ string, v any) bool { return v == nil })
			p := discovery{}
			err := p.ask(t.Context(), newHTTP(web.URL), web.URL, false)
			if tt.want == "" {
				require.NoError(t, err)
				require.Equal(t, web.URL+"/device", p.device)
				return
			}
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, web.URL)
			require.ErrorContains(t, err, "or set a token in the config")
		})
	}
}

func TestOnlyTheAnswerToTheLoginThatIsOpenGivesACode(t *testing.T) {
	t.Parallel()
	const own = "https://a.example"
	for query, tt := range map[string]struct {
		promised   bool
		code, want string
	}{
		"state=s&code=c":                               {false, "c", ""},
		"state=s&code=c&iss=https://a.example":         {true, "c", ""},
		"code=c":                                       {false, "", "this redirect does not belong to the current login"},
		"state=t&code=c":                               {false, "", "this redirect does not belong to the current login"},
		"state=t&error=access_denied":                  {false, "", "this redirect does not belong to the current login"},
		"state=s&code=d":                               {true, "", "lacks the promised issuer"},
		"state=s&code=c&iss=https://b.example":         {false, "", "comes from another authorization server"},
		"state=s&error=access_denied":                  {false, "", "the login was denied"},
		"state=s&code=c&error=x&error_description=why": {false, "", "the authorization server refused: x why"},
		"state=s": {false, "", "has no code"},
	} {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		p := discovery{meta: &oauthex.AuthServerMeta{Issuer: own, AuthorizationResponseIssParameterSupported: tt.promised}}
		code, err := parseRedirect(q, "s", p)
		require.Equal(t, tt.code, code, query)
		if tt.want == "" {
			require.NoError(t, err, query)
			continue
		}
		require.ErrorContains(t, err, tt.want, query)
	}
}

// Only this machine reaches the port of the redirect, regardless of the record.
func TestTheRedirectIsToThisMachineOnly(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"0.0.0.0:0", "[::]:0", ":0", "localhost.example:0", "127.0.0.1:0"} {
		ln, err := listen(t.Context(), Options{}, &Login{Client: client{Redirects: []string{"http://" + host + "/callback"}}})
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1", ln.Addr().(*net.TCPAddr).IP.String(), host)
		require.NoError(t, ln.Close())
	}
}

func TestScopesToAskForAreThoseOfTheConfigElseOfTheServer(t *testing.T) {
	t.Parallel()
	meta := &oauthex.AuthServerMeta{Issuer: "https://a.example", ScopesSupported: []string{"offline_access"}}
	p := discovery{scopes: []string{"read"}, meta: meta}
	before := func(issuer string, wanted ...string) *Login {
		return &Login{Issuer: issuer, Scopes: []string{"read", "granted"}, RequiredScopes: wanted}
	}
	for _, tt := range []struct {
		own    []string
		before *Login
		want   []string
	}{
		{nil, nil, []string{"read", "offline_access"}},
		{[]string{"mine"}, nil, []string{"mine"}},
		{[]string{}, nil, []string{}},
		{nil, before("https://a.example", "write"), []string{"read", "offline_access", "granted", "write"}},
		{nil, before("https://a.example"), []string{"read", "offline_access"}},
		{nil, before("https://b.example", "write"), []string{"read", "offline_access"}},
	} {
		require.Equal(t, tt.want, requestedScopes(Options{Scopes: tt.own}, p, tt.before))
	}
	require.Equal(t, []string{"read"}, p.scopes, "unchanged")
}
