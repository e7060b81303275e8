package gateway

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func secretive(more ...string) *config.Config {
	env := map[string]string{"KEY": `env "secret" & more`, "DEBUG": "true"}
	for i, v := range more {
		env[strconv.Itoa(i)] = v
	}
	return &config.Config{
		Gateway: config.Gateway{AuthToken: "gateway-token"},
		Servers: []config.Server{{
			Env:     env,
			Headers: map[string]string{"Authorization": "Bearer header-secret", "X-Key": "plain secret of ours", "Cookie": "a=b c=d; longer"},
			URL:     "https://user-name:url-password@example.com/mcp?key=query%20secret&v=1",
		}},
	}
}

// sources are texts of which the mask of secretive hides something.
var sources = []string{
	`env "secret" & more`, "gateway-token", "header-secret", "Bearer header-secret", "plain secret of ours", "a=b c=d; longer",
	"user-name:url-password", "url-password", "query secret", "key=query%20secret&v=1",
}

func TestSecretsAreFoundWhereTheMaskHidesSomething(t *testing.T) {
	t.Parallel()
	cfg := secretive()
	mask := config.NewMask(cfg)
	s := newSecrets(cfg, mask.String)
	for _, v := range sources {
		quoted := strconv.Quote(v)
		for _, form := range []string{v, quoted, url.QueryEscape(v), url.PathEscape(v)} {
			for pad := range 9 {
				text := strings.Repeat("e", pad) + form + strings.Repeat("t", pad)
				require.NotEqual(t, text, mask.String(text), "the test is wrong")
				require.Equal(t, mask.String(text), s.text(text))
				require.Equal(t, mask.String(text), string(s.body([]byte(text))))
			}
		}
	}
	for _, plain := range []string{"", "s", "secret", "true", strings.Repeat("header-secre ", 100)} {
		require.Equal(t, mask.String(plain), s.text(plain))
		body := []byte(plain)
		require.Equal(t, body, s.body(body))
	}
	require.Nil(t, newSecrets(&config.Config{}, nil))
	require.Equal(t, "x", (*secrets)(nil).text("x"))
}

func FuzzSecretsAgreeWithTheMask(f *testing.F) {
	f.Add("header-secret", "a header-secret")
	f.Add("a/b c", "aa/b caa%2Fb+c")
	f.Add("ababab", "abababababab")
	f.Fuzz(func(t *testing.T, secret, text string) {
		cfg := secretive(secret)
		mask := config.NewMask(cfg)
		s := newSecrets(cfg, mask.String)
		if got, want := s.text(text+secret+text), mask.String(text+secret+text); got != want {
			t.Fatalf("secret %q in %q\n got %q\nwant %q", secret, text, got, want)
		}
	})
}

func TestCutLeavesNoPartOfASecret(t *testing.T) {
	t.Parallel()
	cfg := secretive()
	s := newSecrets(cfg, config.NewMask(cfg).String)
	for at := journalled - 40; at < journalled+60; at++ {
		body := []byte("header-secret" + strings.Repeat(".", at) + "gateway-token" + strings.Repeat(".", 200))
		kept := string(s.body(body))
		kept = kept[:min(len(kept), journalled)]
		require.NotContains(t, kept, "header-")
		require.NotContains(t, kept, "gate", at)
	}
}

// BenchmarkSecrets is what each body costs in which no secret is.
func BenchmarkSecrets(b *testing.B) {
	var more []string
	for i := range 60 {
		more = append(more, fmt.Sprintf("sk-%037d", i))
	}
	cfg := secretive(more...)
	s := newSecrets(cfg, config.NewMask(cfg).String)
	for _, size := range []int{100, 10_000, journalled} {
		body := []byte(strings.Repeat(`{"content":[{"type":"text","text":"the quick brown fox"}]}`, size/50)[:size])
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				s.body(body)
			}
		})
	}
}
