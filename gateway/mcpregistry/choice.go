package mcpregistry

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Choice is one way to run a server, or to reach it.
type Choice struct {
	Kind    string // npm, pypi, oci, nuget, mcpb, http, sse or what the registry calls it
	Summary string // the package, or the address
	Problem string // why Goblin cannot use it, "" if it can

	entry  *Entry
	pkg    *Package
	remote *Transport
	plan   *plan
	bundle *bundle // nil until it is downloaded
}

// Choices are the ways that an entry has, in its order, packages first.
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
			c.Problem = "Goblin does not know the transport " + r.Type
		}
		if c.Problem == "" {
			c.Problem = wrongHeaders(r.Headers)
		}
		all = append(all, c)
	}
	return all
}

// Command is the program that the choice needs; "" for none, or one that is not known yet.
func (c *Choice) Command() string {
	if c.plan == nil {
		return ""
	}
	return c.plan.command
}

// plan is how a package is run.
type plan struct {
	command string
	before  []string // runtime arguments follow
	given   []string // left out where the runtime arguments say so themselves
	after   []string // behind the runtime arguments: the package
	dashes  bool     // between the package and its arguments, if it has some
	passes  bool     // names of the environment variables are arguments, too
}

// What may stand in the command line: anything else is no package, but an attempt to be an
// option, or a mistake.
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

// newPlan returns the plan of a package, or why there is none.
func newPlan(p *Package) (*plan, string) {
	if t := p.Transport.Type; t != "" && t != "stdio" {
		return nil, fmt.Sprintf("it serves %s by itself: start it, and add its URL", t)
	}
	names := map[string]func() *regexp.Regexp{"npm": npmName, "pypi": pypiName, "nuget": nugetName, "oci": ociName}
	valid, known := names[p.Type]
	switch {
	case p.Type == "mcpb":
		return nil, bundleProblem(p)
	case !known:
		return nil, "Goblin does not know packages of the type " + p.Type
	case len(p.Identifier) > maxWord || !valid().MatchString(p.Identifier):
		return nil, "its identifier is none of " + p.Type
	case len(p.Version) > maxWord || p.Version != "" && !version().MatchString(p.Version):
		return nil, "its version is none"
	}
	for _, v := range p.Environment {
		if !envName().MatchString(v.Name) {
			return nil, "it names an environment variable that cannot be one"
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

// withVersion returns a package identifier with its version.
func withVersion(identifier, sep, version string) string {
	if version == "" {
		return identifier
	}
	return identifier + sep + version
}

// checkBase checks the address of another registry of packages, usual being the one that needs
// no word.
func (p *Package) checkBase(usual string) (other, problem string) {
	if p.RegistryBaseURL == "" || strings.TrimSuffix(p.RegistryBaseURL, "/") == usual {
		return "", ""
	}
	u, err := url.Parse(p.RegistryBaseURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", "it comes from a place without https"
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
		return nil, "it comes from a place that dnx is not told of"
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

// words is the command line of a plan, with the runtime's arguments and the package's.
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
			return "it names a header that cannot be one"
		}
	}
	return ""
}
