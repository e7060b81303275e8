package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// privateKey returns a new key as a config contains it.
func privateKey(t *testing.T) (text string, public *ecdsa.PublicKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})), &key.PublicKey
}

// A stolen assertion works at no other server, and only for a minute.
func TestAnAssertionIsForOneServerAndAMinute(t *testing.T) {
	key, public := privateKey(t)
	text, err := sign(key, "goblin", "https://i.example")
	require.NoError(t, err)
	var claims jwt.RegisteredClaims
	_, err = jwt.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) { return public, nil })
	require.NoError(t, err)
	require.Equal(t, jwt.ClaimStrings{"https://i.example"}, claims.Audience)
	require.Equal(t, "goblin", claims.Issuer)
	require.Equal(t, "goblin", claims.Subject)
	require.NotNil(t, claims.ExpiresAt)
	require.Equal(t, time.Minute, claims.ExpiresAt.Sub(claims.IssuedAt.Time))
	again, err := sign(key, "goblin", "https://i.example")
	require.NoError(t, err)
	var second jwt.RegisteredClaims
	_, _, err = jwt.NewParser().ParseUnverified(again, &second)
	require.NoError(t, err)
	require.NotEqual(t, claims.ID, second.ID)
}

// Errors are logged and shown. A server may copy received secrets into them.
func TestErrorsOfAServerHoldNothingThatItWasSent(t *testing.T) {
	key, _ := privateKey(t)
	for _, c := range []struct{ name, clientSecret, value string }{
		{"client_secret", "of-the-client", ""},
		{"client_assertion", key, ""},
		{"code", "", "of-the-code"},
		{"code_verifier", "", "of-the-verifier"},
		{"refresh_token", "", "of-the-refresh"},
		{"device_code", "", "of-the-device"},
	} {
		var sent string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent = r.FormValue(c.name)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant", "error_description": "got " + sent + " twice: " + sent})
		}))
		l := &Login{Issuer: server.URL, TokenURL: server.URL, Client: client{ID: "goblin"}}
		l.ClientSecret = c.clientSecret
		params := url.Values{}
		if c.value != "" {
			params.Set(c.name, c.value)
		}
		_, err := l.ask(t.Context(), newHTTP(server.URL), "g", params, nil)
		server.Close()
		require.NotEmpty(t, sent, c.name)
		require.EqualError(t, err, "invalid_grant: got *** twice: ***", c.name)
	}
}
