package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/policy"
)

// spellings are spellings of file:///etc/passwd. Each is understood by some servers.
var spellings = []string{
	"file:///etc/passwd", "file:/etc/passwd", "file:etc/passwd", "file://localhost/etc/passwd", "file://LOCALHOST/etc/passwd",
	"FILE:///etc/passwd", "File:/etc/passwd", "file:////etc/passwd", "file://///etc//passwd", "file://host/etc/passwd", "file://user@localhost:1/etc/passwd",
	"file://etc/passwd", "file://../../etc/passwd", "/etc/passwd", "../../etc/passwd", "etc/passwd", " file:///etc/passwd ", "\u00a0file:///etc/passwd\ufeff",
	"file:///%65tc/passwd", "file:///%2565tc/passwd", "file:///%252565tc/passwd", "file:///etc%2Fpasswd", "file%3A///etc/passwd", "%66ile:///etc/passwd",
	"file:///etc%5cpasswd", `file:///etc\passwd`, `file:\\\etc\passwd`, "file:///pub%5C..%5C%65tc%5Cpasswd", "file:%5C%5C%5Cetc/passwd",
	"file:///pub/../etc/passwd", "file:///pub/%2e%2e/etc/passwd", "file:///pub/.%2E/etc/passwd", "file:///pub/%252e%252e/etc/passwd", "file:///pub/..%2fetc/passwd",
	"file:///./etc/passwd", "file:///../etc/passwd", "file:///etc/./passwd", "file:///etc//passwd", "file:///a//../../etc/passwd", "file:///pub/..;/etc/passwd",
	"file:///etc/passwd?x", "file:///etc/passwd#x", "file:///etc/passwd?x#y", "file:///etc/passwd%3Fx", "file:///etc/passwd%23x", "file:///etc/passwd;v=1", "file:///etc;v=1/passwd",
	"file:///pub/?/../../etc/passwd", "file:///pub/#/../../etc/passwd", "file:///etc/passwd/", "file:///etc/passwd/.", "file:///etc/passwd//", "file:///etc/passwd.", "file:///etc/passwd%20",
	"url:file:///etc/passwd", "<URL:file:///etc/passwd>", "%3Cfile:/etc/passwd%3E", "file:///etc/passwd::$DATA", "file:///pub%2f%2e%2e%2f%65tc%2fpasswd%3f%23", "file://localhost/pub/../%65tc/passwd?x", "file://localhost%2fetc%2fpasswd", "file:///pub\\..%2f%252e/etc\\passwd?a#b",
}

// unsound are spellings that readers understand in different ways.
var unsound = []string{
	"file:///pub/%zz/../../%65tc/passwd", "file:///%65tc/passwd%", "file:///etc/passwd%0", "file:///%u0065tc/passwd", "file:///%65tc/pass%wd",
	"fi\tle:///etc/passwd", "file:///e\ntc/passwd", "file:///et\rc/passwd", "file:///etc/passwd\x00", "\x01file:///etc/passwd", "file:///etc/pass\x7fwd", "file:///etc/pass\u0085wd",
	"file:///e%0atc/passwd", "file:///etc/passwd%00.txt", "file:///etc/passwd%2500", "file:///%c0%ae%c0%ae/etc/passwd", "file:///etc%c0%afpasswd", "file:///etc/\xffpasswd",
	"file:///%" + strings.Repeat("25", 200) + "65tc/passwd", "file:///" + strings.Repeat("pub/../", 20000) + "etc/passwd",
}

func TestADeniedFileIsDeniedInEverySpelling(t *testing.T) {
	t.Parallel()
	for _, deny := range []string{
		"file:///etc/*", "file:/etc/*", "file://localhost/etc/*", "FILE:///etc/*", "file:///%65tc/*", "file:///etc/passwd", "file:///etc/passwd/", "/etc/*", "file:///etc", "file:///etc//passwd",
	} {
		f := policy.NewURIFilter(config.Filter{Deny: []string{"x:*", deny}})
		for _, uri := range append(spellings, unsound...) {
			if deny == "file:///etc" {
				uri = strings.Replace(uri, "/passwd", "", 1)
				uri = strings.NewReplacer("%2fpasswd", "", "%2Fpasswd", "", `\passwd`, "", "%5cpasswd", "", "%5Cpasswd", "").Replace(uri)
			}
			require.False(t, f.Match(uri), "%s %q", deny, uri)
		}
		for _, uri := range []string{"file:///pub/passwd", "file:///etcetera", "file:///pub/etc/passwd", "db://tables/users?limit=1", "file:///pub/a%20b%25.txt", "mcp://fs/file:///pub/x"} {
			require.True(t, f.Match(uri), "%s %q", deny, uri)
		}
	}
}

func TestNoSpellingLeadsOutOfWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for _, allow := range []string{"file:///srv/*", "file:/srv/*", "file://localhost/srv/*", "file:///srv//*"} {
		f := policy.NewURIFilter(config.Filter{Allow: []string{allow}})
		for _, uri := range append(spellings, unsound...) {
			require.False(t, f.Match(uri), "%s %q", allow, uri)
		}
		for _, uri := range []string{
			"file:///srv/../etc/passwd", "file:///srv/%2e%2e/etc/passwd", "file:///srv/..%2fetc/passwd", `file:///srv/..\etc/passwd`, "file:///srv/%252e%252e/etc/passwd",
			"file:///srv/?/../../etc/passwd", "file:///srv/..;/etc/passwd", "file:///srv/a/../../etc/passwd", "file:///srv/%2e%2e", "file:///srv/..",
		} {
			require.False(t, f.Match(uri), "%s %q", allow, uri)
		}
	}
	f := policy.NewURIFilter(config.Filter{Allow: []string{"*.txt", "db://t?table=users", `doc://d\?x`, "x://a%2Ab", "x://a%3Fc"}})
	for _, uri := range []string{
		"file:///etc/passwd?.txt", "file:///etc/passwd#.txt", "file:///etc/passwd;.txt", "file:///etc/passwd%3f.txt", "file:///etc/passwd%23a.txt", "file:///etc/passwd%00.txt",
		"db://t", "db://t?table=secrets", "db://t?table=users#x", "doc://d", "doc://dax",
		"x://asecretb", "x://asc", // the globs have no wildcards
	} {
		require.False(t, f.Match(uri), uri)
	}
	for _, uri := range []string{"file:///pub/a.txt", "file:///pub/a%20b.txt", "https://example.com/a.txt", "db://t?table=users", "doc://d?x", "x://a*b", "x://a%2ab"} {
		require.True(t, f.Match(uri), uri)
	}
}

func TestWhatIsListedAsTheConfigSaysIsAllowed(t *testing.T) {
	t.Parallel()
	for allow, uris := range map[string][]string{
		"file:///srv/*":             {"file:///srv/a", "file:///srv/a%20b", "file:///srv/a b", "file:///srv/docs/", "file:///srv/.hidden", "file:///srv/a..b", "file:///srv/100%25", "file:///srv/a%23b", "file:///srv/ü", "file:///srv/%C3%BC", "file:/srv/a", "file:///srv/a?v=1", "file:///srv/C++", "file://localhost/srv/a", "file://LocalHost/srv/a"},
		"file:///srv":               {"file:///srv"},
		"file:///srv/a%20b":         {"file:///srv/a%20b", "file:///srv/a b"},
		"file://logs/*":             {"file://logs/app.log"},
		"file:///[a-z]:/pub/*":      {"file:///c:/pub/x", "file:///c%3A/pub/x"},
		"https://example.com/*":     {"https://example.com/", "https://example.com/a?b=c#d", "https://example.com/a;v=1"},
		"https://example.com":       {"https://example.com"},
		"https://example.com//a/*":  {"https://example.com//a/b"},
		"https://e.com/a;v=1":       {"https://e.com/a;v=1"},
		"doc://x#intro":             {"doc://x#intro"},
		"Notes://Host/*":            {"Notes://Host/a"},
		"mcp://fs/file:///srv/*":    {"mcp://fs/file:///srv/a"},
		"proxy://x/https://e.com/*": {"proxy://x/https://e.com/a?b"},
		`C:\\pub\\*`:                {`C:\pub\a`},
		"*":                         {"x", "x:y", "data:text/plain;base64,AAAA", "urn:isbn:0-1", "mailto:a@b"},
		"memo:?*":                   {"memo:1"},
		"ui://*/[^.]*":              {"ui://app/x"},
	} {
		f := policy.NewURIFilter(config.Filter{Allow: []string{"other:*", allow}})
		for _, uri := range uris {
			require.True(t, f.Match(uri), "%s %q", allow, uri)
			require.False(t, policy.NewURIFilter(config.Filter{Deny: []string{allow}}).Match(uri), "%s %q", allow, uri)
		}
	}
}

func TestDeniedHostsAndSchemes(t *testing.T) {
	t.Parallel()
	for deny, uris := range map[string][]string{
		"http://169.254.169.254/*": {
			"http://169.254.169.254/a", "http://2852039166/a", "http://0xa9fea9fe/a", "http://169.254.43518/a", "HTTP://169.254.169.254:80/a", "http:169.254.169.254/a", "http:/169.254.169.254/a",
			"http:///169.254.169.254/a", `http:\\169.254.169.254\a`, "http://u:p@169.254.169.254/a", "http://@169.254.169.254/a", "http://169.254.169.254", "http://１６９.254.169.254/a", "http://169.254.169.254./a",
		},
		"https://intern.example/*": {"https://INTERN.example/a", "https://intern.example./a", "https://intern%2eexample/a", "https://intern。example/a", "https://intern.example:443/a", "https://intern.example?x"},
		"notes://private/*":        {"notes://private/a", "notes://private", "notes:///private/a", "notes:private/a", "NOTES://Private/a", "notes://x/../../private/a", "notes://private%2fa", "notes://pub/../private/../../private/a", "notes://./private/a"},
		"notes:///private*":        {"notes:///private", "notes://x/private", "notes://private"},
		"file:///C:/Secret/*":      {"file:///c:/Secret/a", "file:///C|/Secret/a", "file:///C:/../Secret/a", "file:///c%3A/Secret/a", `file:///C:\Secret\a`, "file://host/C:/Secret/a", `C:\Secret\a`, "C|/Secret/a", "file:///C:/Secret./a"},
		"*/id_rsa":                 {"file:///id_rsa/", "file:///x/id_rsa.", "file:///x/id_rsa?y", "file:///x/id%5frsa", `file:///x\id_rsa`},
		"file:///\u00fc/*":         {"file:///u\u0308/a", "file:///u%cc%88/a", "file:///%C3%BC/a"},
		"file:///u\u0308/*":        {"file:///\u00fc/a"},
		"file:///secret/*": {
			"file:///sefile://cret/k", "file:///pub/.file://./secret/k", "file:///sefile:%2F/cret/k", "file:///sefile:cret/k", "FILE:///sefile://cret/k", "file:///sefifile://le://cret/k",
		},
		"notes://priv/*":                    {"notes://prinotes://v/a", "NOTES://prinotes://v/a", "notes://pub/.notes://./.notes://./priv/a", "notes://priv:/a"},
		"*.pem":                             {"file:///k.pefile://m"},
		"http://127.0.0.1:80/*":             {"http://127.0.0.1/a", "http://2130706433/a"},
		"https://example.com:443/private/*": {"https://example.com/private/a", "https://example.com:0443/private/a"},
		"https://b\u00fccher.example/*":     {"https://xn--bcher-kva.example/a"},
		"http://2130706433/*":               {"http://127.0.0.1/a"},
		"file:///pub/../sec/*":              {"file:///sec/k"},
		"http://a.example/b/../c/*":         {"http://a.example/c/d"},
		"x://h/a/../secret":                 {"x://h/secret"},
		"doc://h/secret":                    {"doc://h/pub///../../secret"}, // as file systems read it, below the host
		"https://intern.example./*":         {"https://intern.example/a"},
		"*//private/*":                      {"doc://private", "doc://private/a"},
	} {
		f := policy.NewURIFilter(config.Filter{Deny: []string{deny}})
		for _, uri := range uris {
			require.False(t, f.Match(uri), "%s %q", deny, uri)
		}
	}
	f := policy.NewURIFilter(config.Filter{Allow: []string{"file:///srv/pub/*"}})
	require.False(t, f.Match("file:///srv/pub/.file://./secret/k"))
	require.True(t, policy.NewURIFilter(config.Filter{Allow: []string{"proxy://x/*"}}).Match("proxy://x/https://a.example/b"))
	f = policy.NewURIFilter(config.Filter{Deny: []string{"notes://private/*", "file:///Secret/*"}})
	for _, uri := range []string{"notes://shared/private/a", "notes://privates", "file:///secret/a", "file:///x/Secret/a"} {
		require.True(t, f.Match(uri), uri)
	}
}

func TestTemplatesAreJudgedAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	f := policy.NewURIFilter(config.Filter{Allow: []string{"file:///srv/*", "db://t{?limit}", "x:///{+path}"}, Deny: []string{"file:///srv/secret/*"}})
	for template, want := range map[string]bool{
		"file:///srv/{name}": true, "file:///srv/{+path}": true, "file:///srv/{a}{?b,c}": true, "db://t{?limit}": true, "x:///{+path}": true,
		"file:///etc/{name}": false, "file:///srv/../etc/{name}": false, "file:///srv/%2e%2e/{name}": false, "file:///srv/secret/{name}": false,
		"FILE:///srv/secret/{name}": false, `file:///srv\secret\{name}`: false, "file:///srv/x/../secret/{name}": false, "file:///srv/\x00{name}": false, "db://t": false,
	} {
		require.Equal(t, want, f.MatchTemplate(template), template)
	}
	f = policy.NewURIFilter(config.Filter{Allow: []string{"*"}})
	require.True(t, f.MatchTemplate("doc://a"))
	require.False(t, f.MatchTemplate("doc://a\x00"), "readers disagree about it")
}

func TestURIsWithTooManyReadingsAreRefused(t *testing.T) {
	t.Parallel()
	f := policy.NewURIFilter(config.Filter{Allow: []string{"x:*"}})
	escaped := func(times int) string { return "x:%" + strings.Repeat("25", times) + "41" }
	long := func(size int) string { return "x:" + strings.Repeat("a", size) + "%25252541" }
	for uri, want := range map[string]bool{
		escaped(100): true, escaped(130): false, // limit: 128
		long(10 << 10): true, long(20 << 10): false, // limit: 64 KiB in total
	} {
		require.Equal(t, want, f.Match(uri), "%.40s… of %d bytes", uri, len(uri))
	}
}

func TestWithoutFiltersEverythingPasses(t *testing.T) {
	t.Parallel()
	f := policy.NewURIFilter(config.Filter{})
	require.True(t, f.Match("file:///%zz\x00") && f.MatchTemplate("\x00"))
}

func BenchmarkMatch(b *testing.B) {
	f := policy.NewURIFilter(config.Filter{Allow: []string{"file:///srv/*", "db://*"}, Deny: []string{"file:///srv/secret/*", "*.pem", "file:///etc/*"}})
	for name, uri := range map[string]string{
		"plain": "file:///srv/project/src/main.go", "escapes": "file:///srv/a%20b%20c.txt", "most": "file:///" + strings.Repeat("%252fa", 2000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Match(uri)
			}
		})
	}
}
