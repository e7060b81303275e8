package main

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// project describes a published Goblin.
type project struct {
	module  string // host/owner/goblin, perhaps with more elements before the last
	host    string
	owner   string // the first element after the host
	contact string // an absolute URL or a mail address
}

const (
	program = "goblin"
	// lastEarly sorts after all permitted hosts. Go initializes packages in the order of
	// their paths, and tui/termquery must precede "unicode", which Bubble Tea waits for.
	lastEarly = "unicode"
)

var (
	hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)
	element  = regexp.MustCompile(`^[A-Za-z0-9_~]([A-Za-z0-9._~-]*[A-Za-z0-9_~-])?$`)
)

func newProject(module, contact string) (project, error) {
	p := project{module: module, contact: contact}
	bad := func(format string, args ...any) (project, error) {
		return project{}, fmt.Errorf("module path %q: %s", module, fmt.Sprintf(format, args...))
	}
	parts := strings.Split(module, "/")
	p.host = parts[0]
	switch {
	case module == "":
		return project{}, errors.New("no module path; set MODULE to HOST/OWNER/goblin")
	case strings.Contains(module, "://"):
		return bad("omit the scheme; it is HOST/OWNER/goblin")
	case len(parts) < 3:
		return bad("it has %d parts; it must be HOST/OWNER/goblin", len(parts))
	case !hostName.MatchString(p.host):
		return bad("%q is no lower-case host name with a dot and without a port", p.host)
	case parts[len(parts)-1] != program:
		return bad("the last part must be %q, because \"go install\" names the program by it", program)
	case p.host > lastEarly:
		return bad("the host must sort before %q, or commands query the terminal at start; see tui/termquery", lastEarly)
	}
	p.owner = parts[1]
	if i := slices.IndexFunc(parts[1:], func(s string) bool { return !element.MatchString(s) }); i >= 0 {
		return bad("%q is no valid part of a path", parts[1+i])
	}
	switch {
	case contact == "" && p.host == "github.com":
		p.contact = p.homepage() + "/security/advisories/new"
	case contact == "":
		return project{}, fmt.Errorf("no contact for private reports on %s; set CONTACT to a mail address or URL", p.host)
	case isMail(contact), isURL(contact):
	default:
		return project{}, fmt.Errorf("contact %q is neither a mail address nor an https URL", contact)
	}
	return p, nil
}

func isMail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && !strings.ContainsAny(s, "\"'<> ")
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Host != "" && !strings.ContainsAny(s, "\"'<> ")
}

func (p project) homepage() string { return "https://" + p.module }

// releases returns the address of the files of a release. GitHub, Gitea and Forgejo agree on
// its form. .goreleaser.yaml and the bundles replace VERSION.
func (p project) releases() string { return p.homepage() + "/releases/download/vVERSION" }

// image returns the name of the container image in the registry of the host.
func (p project) image() string {
	path := strings.ToLower(strings.TrimPrefix(p.module, p.host+"/"))
	switch p.host {
	case "github.com":
		return "ghcr.io/" + path
	case "gitlab.com":
		return "registry.gitlab.com/" + path
	default:
		return p.host + "/" + path
	}
}

// namespace returns the namespace in the registry of MCP servers.
func (p project) namespace() string {
	if p.host == "github.com" {
		return "io.github." + p.owner
	}
	parts := strings.Split(p.host, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

// maintainer returns the mail address in packages for Linux.
func (p project) maintainer() string {
	if isMail(p.contact) {
		return p.contact
	}
	return p.owner + "@users.noreply." + p.host
}

// place is a text that names the project: the first group of a pattern. A file with a place
// must have it.
type place struct {
	file    string
	pattern *regexp.Regexp
	value   string
}

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)

func (p project) places() []place {
	at := func(file, pattern, value string) place {
		return place{file, regexp.MustCompile(pattern), value}
	}
	return []place{
		{"go.mod", moduleLine, p.module},
		at(".golangci.yml", `(?m)^ +local-prefixes: \[(\S+)\]$`, p.module),
		at(".golangci.yml", `(?m)^ +module-path: (\S+)$`, p.module),
		at(".goreleaser.yaml", `envOrDefault "HOMEPAGE" "([^"]*)"`, p.homepage()),
		at(".goreleaser.yaml", `envOrDefault "RELEASES" "([^"]*)"`, p.releases()),
		at(".goreleaser.yaml", `envOrDefault "OWNER" "([^"]*)"`, p.owner),
		at(".goreleaser.yaml", `envOrDefault "IMAGE" "([^"]*)"`, p.image()),
		at(".goreleaser.yaml", `(?m)^ +maintainer: .* <(\S+)>$`, p.maintainer()),
		at("Taskfile.yml", `\$\{HOMEPAGE:-([^}]*)\}`, p.homepage()),
		at("Taskfile.yml", `\$\{RELEASES:-([^}]*)\}`, p.releases()),
		at("Taskfile.yml", `\$\{NAMESPACE:-([^}]*)\}`, p.namespace()),
		at("SECURITY.md", `(?m)^Contact: (.*)$`, "<"+p.contact+">"),
		at("CODE_OF_CONDUCT.md", `(?m)^Contact: (.*)$`, "<"+p.contact+">"),
		at(".github/ISSUE_TEMPLATE/config.yml", `(?m)^ +url: (\S+)/blob/HEAD/SECURITY\.md$`, p.homepage()),
		at("README.md", `(?m)^go install (\S+)`, p.module+"@latest"),
	}
}

// set returns text with the first group of each match replaced. It returns false if the text
// has no match.
func (p place) set(text string) (string, bool) {
	var out strings.Builder
	end := 0
	for _, m := range p.pattern.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(text[end:m[2]])
		out.WriteString(p.value)
		end = m[3]
	}
	out.WriteString(text[end:])
	return out.String(), end > 0
}
