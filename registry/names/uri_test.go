package names_test

import (
	"strings"
	"testing"

	"goblin/registry/names"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNorm(t *testing.T) {
	for in, want := range map[string]string{
		"mcp://s/file:///a/b":               "mcp://s/file:///a/b",
		" \x00mcp://s/x\t\r\n ":             "mcp://s/x",
		"mcp://s/a\tb\nc":                   "mcp://s/abc",
		"mcp://s/a b?c d#e f":               "mcp://s/a%20b?c%20d#e%20f",
		"mcp://s/é日?ü#ß":                    "mcp://s/%C3%A9%E6%97%A5?%C3%BC#%C3%9F",
		"mcp://s/\"<>`{}?\"<>`{}#\"<>`{}":   "mcp://s/%22%3C%3E%60%7B%7D?%22%3C%3E`{}#%22%3C%3E%60{}",
		"mcp://s/%|\\^[]'":                  "mcp://s/%|\\^[]'",
		"mcp://s/a/./b":                     "mcp://s/a/b",
		"mcp://s/a/../b":                    "mcp://s/b",
		"mcp://s/a/%2E%2e/b/%2e":            "mcp://s/b/",
		"mcp://s/a/.%2e/b":                  "mcp://s/b",
		"mcp://s/a/%2e./b":                  "mcp://s/b",
		"mcp://s/../../b":                   "mcp://s/b",
		"mcp://s/a/..":                      "mcp://s/",
		"mcp://s/a/.":                       "mcp://s/a/",
		"mcp://s/a/.../b":                   "mcp://s/a/.../b",
		"mcp://s/a//../b":                   "mcp://s/a/b",
		"mcp://s/a?x/../y#z/../w?":          "mcp://s/a?x/../y#z/../w?",
		"mcp://s/a#b#c?d":                   "mcp://s/a#b#c?d",
		"mcp://s/file:///x/../../../../etc": "mcp://s/etc",
		"mcp://S/A":                         "mcp://S/A",
		"mcp://s":                           "mcp://s",
		"mcp://s?q r":                       "mcp://s?q%20r",
		"mcp://s/\x7f":                      "mcp://s/%7F",
		"":                                  "",
	} {
		if got := names.NormalizeURI(in); got != want {
			t.Errorf("Norm(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNormIsStableOnManyURIs(t *testing.T) {
	part := rapid.OneOf(rapid.SampledFrom([]string{"/", "//", "..", ".", "%2e", "%2F", "%", " ", "é", "?", "#", "{", "\\", "\t", ":", "\u202e"}), rapid.String())
	rapid.Check(t, func(r *rapid.T) {
		checkNorm(t, "mcp://s/"+strings.Join(rapid.SliceOf(part).Draw(r, "parts"), ""))
	})
}

func checkNorm(t *testing.T, uri string) {
	t.Helper()
	key := names.NormalizeURI(uri)
	require.Equal(t, key, names.NormalizeURI(key), "%q", uri)
	if names.IsCleanURI(uri) {
		require.Equal(t, uri, key)
	}
	if strings.HasPrefix(uri, "mcp://s/") {
		require.True(t, strings.HasPrefix(key, "mcp://s/"), "%q became %q", uri, key)
		for i := range len(key) {
			require.True(t, key[i] > ' ' && key[i] < 0x7f, "%q", key)
		}
	}
}

func FuzzNorm(f *testing.F) {
	for _, s := range []string{"mcp://s/a/../b?c#d", " mcp://s/%2e%2E/\té", "mcp://", "://", "x:/.", "mcp://s#/..?"} {
		f.Add(s)
	}
	f.Fuzz(checkNorm)
}

func TestAddressesAreReadAsURLParsersDo(t *testing.T) {
	for uri, want := range map[string]string{
		"mcp://s/x": "s|x", "MCP://s/x y ": "s|x y ", "\x00 mcp://s/x": "s|x", "m\tcp:\n//s/x\t": "s|x\t", "mcp://s\r/x": "s|x",
		"mcp://s": "s|", "mcp://s/": "s|", "mcp://": "|", "mcp:///x": "|x", "mcp://s?a/b": "s|", "mcp://s#a/b": "s|", "mcp://s/?a": "s|?a",
		"mcp:/s/x": "-", "mcpx://s/x": "-", "": "-", "x": "-", "mc": "-", "\t": "-",
	} {
		server, rest, ours := names.NormalizeAddress(uri)
		got := server + "|" + rest
		if !ours {
			got = "-"
		}
		require.Equal(t, want, got, "%q", uri)
	}
}

func BenchmarkNorm(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		names.NormalizeURI("mcp://s/file:///srv/./a b/é.md?x=1#y")
	}
}
