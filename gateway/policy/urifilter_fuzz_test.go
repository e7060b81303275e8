package policy_test

import (
	neturl "net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/text/unicode/norm"

	"goblin/gateway/config"
	"goblin/gateway/policy"
)

var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

func unescape(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		plain, _ := neturl.PathUnescape(e)
		return plain
	})
}

// files returns the files that servers may open for a URI, by several common methods.
func files(uri string) (found []string) {
	open := func(name string) {
		if name == "" {
			return
		}
		for range 3 { // some servers decode before, between and after
			found = append(found, path.Clean("/"+name), path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), path.Clean("/"+norm.NFC.String(name)))
			name = unescape(name)
		}
	}
	for range 3 {
		if u, err := neturl.Parse(strings.TrimSpace(uri)); err == nil && (u.Scheme == "file" || u.Scheme == "" && !strings.Contains(unescape(unescape(unescape(uri))), ":")) {
			open(u.Path)
			open(u.EscapedPath())
			open(u.Opaque)
			open(u.Host + u.Path)
		}
		if u, err := url.Parse(uri); err == nil && u.Scheme() == "file" {
			open(u.Pathname())
			open(u.Hostname() + u.Pathname())
		}
		for _, prefix := range []string{"file://localhost/", "file://", "file:"} { // as in Python and many other languages
			if rest, ok := strings.CutPrefix(strings.TrimSpace(uri), prefix); ok {
				open(rest)
				open(strings.ReplaceAll(rest, prefix, ""))
				bare, _, _ := strings.Cut(rest, "#")
				bare, _, _ = strings.Cut(bare, "?")
				open(bare)
				bare, _, _ = strings.Cut(bare, ";")
				open(bare)
			}
		}
		uri = unescape(uri)
	}
	return found
}

// FuzzNoReaderOpensWhatIsDenied compares the verdict with other readers of URIs: net/url,
// a WHATWG parser and simple decoders.
func FuzzNoReaderOpensWhatIsDenied(f *testing.F) {
	for _, uri := range append(spellings, unsound...) {
		f.Add(uri)
		f.Add(strings.Replace(uri, "///", "///srv/", 1))
	}
	deny := policy.NewURIFilter(config.Filter{Deny: []string{"file:///etc/*"}})
	allow := policy.NewURIFilter(config.Filter{Allow: []string{"file:///srv/*"}})
	within := func(file, dir string) bool { return file == dir || strings.HasPrefix(file, dir+"/") }
	f.Fuzz(func(t *testing.T, uri string) {
		if len(uri) > 4<<10 {
			t.Skip("these readers are slow")
		}
		denied, allowed := !deny.Match(uri), allow.Match(uri)
		deny.MatchTemplate(uri)
		policy.NewURIFilter(config.Filter{Allow: []string{uri}, Deny: []string{uri}}).Match("file:///srv/x")
		for _, file := range files(uri) {
			if !denied && within(file, "/etc") {
				t.Fatalf("%q opens %s, which is denied", uri, file)
			}
			if allowed && !within(file, "/srv") {
				t.Fatalf("%q opens %s, which is not allowed", uri, file)
			}
		}
	})
}
