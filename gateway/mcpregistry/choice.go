package mcpregistry

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Choice is one way to run or reach a server.
type Choice struct {
	Kind    string // npm, pypi, oci, nuget, mcpb, http, sse, or the registry's own word
	Summary string // the package or the URL
	Problem string // why Goblin can't use it, or ""

	entry  *Entry
	pkg    *Package
	remote *Transport
	plan   *plan
	bundle *bundle // nil before the download
}

// Choices returns an entry's packages and then its remotes.
func (e *Entry) Choices() []Choice {
	var all []Choice
	for i := range e.Packages {
		p := &e.Packages[i]
		c := Choice{Kind: p.Type, Summary: p.Identifier, entry: e, pkg: p}
		if p.Version != "" {
			c.Summary += " " + p.Version
		}
		c.plan, c.Problem = newPlan(p)
		all = append(all, c)
	}
	for i := range e.Remotes {
		r := &e.Remotes[i]
		c := Choice{Kind: r.Type, Summary: r.URL, entry: e, remote: r}
		switch r.Type {
		case "streamable-http", "http":
			c.Kind = "http"
		case "sse":
		default:
			c.Problem = "unsupported transport " + r.Type
		}
		if c.Problem == "" {
			c.Problem = wrongHeaders(r.Headers)
		}
		all = append(all, c)
	}
	return all
}

// Command returns the program that the choice needs, or "" if there is none or it is not
// known yet.
func (c *Choice) Command() string {
	if c.plan == nil {
		return ""
	}
	return c.plan.command
}

type plan struct {
	command string
	before  []string // in front of the runtime arguments
	given   []string // defaults, unless the runtime arguments contain them
	after   []string // the package, after the runtime arguments
	dashes  bool     // needs -- in front of the package's arguments
	passes  bool     // passes environment variables on by arguments with their names
}

// Valid words of a command line. Other text is not a package, but a mistake or an attempt
// to inject options.
var (
	npmName   = once(`^(@[a-zA-Z0-9~][a-zA-Z0-9._~-]*/)?[a-zA-Z0-9~][a-zA-Z0-9._~-]*$`)
	pypiName  = once(`^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?$`)
	nugetName = once(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	ociName   = once(`^[a-zA-Z0-9][a-zA-Z0-9._/-]*(:[0-9]+/[a-zA-Z0-9._/-]+)?(:[a-zA-Z0-9_][a-zA-Z0-9._-]*)?(@sha256:[a-f0-9]{64})?$`)
	version   = once(`^[A-Za-z0-9][A-Za-z0-9.+_!-]*$`)
	envName   = once(`^[A-Za-z_][A-Za-z0-9_]*$`)
	header    = once("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

func once(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

const maxWord = 300 // bytes of an identifier

func newPlan(p *Package) (*plan, string) {
	if t := p.Transport.Type; t != "" && t != "stdio" {
		return nil, fmt.Sprintf("it serves %s itself: start it and add its URL", t)
	}
	names := map[string]func() *regexp.Regexp{"npm": npmName, "pypi": pypiName, "nuget": nugetName, "oci": ociName}
	valid, known := names[p.Type]
	switch {
	case p.Type == "mcpb":
		return nil, bundleProblem(p)
	case !known:
		return nil, "unsupported package type " + p.Type
	case len(p.Identifier) > maxWord || !valid().MatchString(p.Identifier):
		return nil, "its identifier is invalid for " + p.Type
	case len(p.Version) > maxWord || p.Version != "" && !version().MatchString(p.Version):
		return nil, "its version is invalid"
	}
	for _, v := range p.Environment {
		if !envName().MatchString(v.Name) {
			return nil, "an environment variable has an invalid name"
		}
	}
	switch p.Type {
	case "npm":
		return p.npm()
	case "pypi":
		return p.pypi()
	case "nuget":
		return p.nuget()
	}
	return p.oci()
}

func withVersion(identifier, sep, version string) string {
	if version == "" {
		return identifier
	}
	return identifier + sep + version
}

// checkBase checks the URL of a package registry. other is "" for usual, the default one.
func (p *Package) checkBase(usual string) (other, problem string) {
	if p.RegistryBaseURL == "" || strings.TrimSuffix(p.RegistryBaseURL, "/") == usual {
		return "", ""
	}
	u, err := url.Parse(p.RegistryBaseURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", "its package registry doesn't use https"
	}
	return u.String(), ""
}

func (p *Package) npm() (*plan, string) {
	other, problem := p.checkBase("https://registry.npmjs.org")
	pl := &plan{command: "npx", given: []string{"-y"}, after: []string{withVersion(p.Identifier, "@", p.Version)}}
	if p.Runtime == "bunx" {
		pl.command, pl.given = "bunx", nil
	}
	if other != "" {
		pl.before = []string{"--registry=" + other}
	}
	return pl, problem
}

func (p *Package) pypi() (*plan, string) {
	other, problem := p.checkBase("https://pypi.org")
	pl := &plan{command: "uvx", after: []string{withVersion(p.Identifier, "@", p.Version)}}
	if p.Runtime == "pipx" {
		pl.command, pl.before, pl.after = "pipx", []string{"run"}, []string{withVersion(p.Identifier, "==", p.Version)}
	}
	if other != "" {
		pl.before = append(pl.before, "--index-url="+other)
	}
	return pl, problem
}

func (p *Package) nuget() (*plan, string) {
	if other, problem := p.checkBase("https://api.nuget.org"); problem != "" || other != "" && !strings.HasPrefix(other, "https://api.nuget.org/") {
		return nil, "its package registry is not supported by dnx"
	}
	return &plan{command: "dnx", after: []string{withVersion(p.Identifier, "@", p.Version)}, given: []string{"--yes"}, dashes: true}, ""
}

func (p *Package) oci() (*plan, string) {
	image := p.Identifier
	last := image[strings.LastIndexByte(image, '/')+1:]
	if !strings.ContainsAny(last, ":@") {
		image = withVersion(image, ":", p.Version)
	}
	if other, problem := p.checkBase("https://docker.io"); problem != "" {
		return nil, problem
	} else if u, err := url.Parse(other); other != "" && err == nil && u.Host != "registry-1.docker.io" && !strings.HasPrefix(image, u.Host+"/") {
		image = u.Host + "/" + image
	}
	command := "docker"
	if p.Runtime == "podman" {
		command = p.Runtime
	}
	return &plan{command: command, before: []string{"run"}, given: []string{"-i", "--rm"}, after: []string{image}, passes: true}, ""
}

func (pl *plan) words(runtime, own []string, environment []KeyValue) []string {
	if len(pl.before) > 0 && len(runtime) > 0 && runtime[0] == pl.before[0] {
		runtime = runtime[1:]
	}
	out := slices.Clone(pl.before)
	said := func(w string) bool {
		return slices.Contains(runtime, w) || w == "-y" && slices.Contains(runtime, "--yes") || w == "-i" && slices.Contains(runtime, "--interactive")
	}
	for _, w := range pl.given {
		if !said(w) {
			out = append(out, w)
		}
	}
	out = append(out, runtime...)
	if pl.passes {
		for _, v := range environment {
			out = append(out, "-e", v.Name)
		}
	}
	out = append(out, pl.after...)
	if pl.dashes && len(own) > 0 {
		out = append(out, "--")
	}
	return append(out, own...)
}

func wrongHeaders(headers []KeyValue) string {
	if len(headers) > maxParts {
		return "it has too many headers"
	}
	for _, h := range headers {
		if !header().MatchString(h.Name) {
			return "a header has an invalid name"
		}
	}
	return ""
}
