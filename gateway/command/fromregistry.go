package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/mcpregistry"
	"goblin/registry/termtext"
)

// FromRegistry is how a server of the registry is added.
type FromRegistry struct {
	URL string   // of the registry; "" for the one that is configured
	Use string   // the kind of package or remote; "" for any
	Set []string // KEY=VALUE, the answers that are known
	Yes bool     // nothing is asked that there is no need to ask
	// Free says why no server may be added by a name; may be nil.
	Free func(name string) error
	// Keep keeps a secret, and says where that is.
	Keep func(name, value string) (place string, err error)
}

// Flags adds the flags of a command that adds servers of the registry.
func (o *FromRegistry) Flags(flags *pflag.FlagSet) {
	cli.Name(flags, &o.URL, "registry-url", "ask the registry at this `URL`")
	cli.Name(flags, &o.Use, "use", "with --registry, the `KIND` of package or remote: npm, pypi, oci, nuget, mcpb, http, sse")
	flags.BoolVar(&o.Yes, "yes", false, "with --registry, do not ask before it is added")
	flags.StringArrayVar(&o.Set, "set", nil, "with --registry, an answer, `KEY=VALUE`; ${VAR} stays a variable")
}

// Define makes a definition of a server of the registry, by its name, perhaps with
// @VERSION; as is what it is to be called in the config, "" for a short form. The user of
// a terminal is asked for what is not set, and for consent to what will run; then secrets
// are kept.
func (a *App) Define(ctx context.Context, name, as string, o FromRegistry) (*mcpregistry.Definition, error) {
	answers := map[string][]string{}
	for _, pair := range o.Set {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" { // which is not shown: it may be a secret
			return nil, cli.Fail(cli.CodeUsage, "--set wants KEY=VALUE")
		}
		answers[key] = append(answers[key], value)
	}
	client, err := a.registryAt(o.URL)
	if err != nil {
		return nil, err
	}
	e, err := a.entry(ctx, client, name)
	if err != nil {
		return nil, err
	}
	if o.Free != nil {
		if err := o.Free(cmp.Or(as, e.ShortName())); err != nil {
			return nil, err
		}
	}
	p := a.prompter(ctx)
	c, err := choose(p, &e, o.Use)
	if err != nil {
		return nil, err
	}
	if c.NeedsDownload() {
		a.Warn("downloading %s", c.About)
		state := config.StateFolder(a.Getenv)
		if state == "" {
			return nil, cli.Fail(cli.CodeConfig, "there is no place for a bundle: set HOME")
		}
		if err := client.Download(ctx, c, filepath.Join(state, "bundles")); err != nil {
			return nil, registryError(err)
		}
		defer c.Discard()
	}
	if p.asks {
		if err := question(p, c.Questions(), answers, o.Yes); err != nil {
			return nil, err
		}
	}
	d, err := c.Build(cmp.Or(as, e.ShortName()), answers)
	if err != nil {
		return nil, cli.Fail(cli.CodeUsage, "%w", err)
	}
	a.present(d)
	if err := consent(p, d, o.Yes); err != nil {
		return nil, err
	}
	if err := c.Unpack(); err != nil {
		return nil, err
	}
	for _, s := range d.Secrets {
		place, err := o.Keep(s.Name, s.Value)
		if err != nil {
			return nil, fmt.Errorf("keep the secret %q: %w", s.Name, err)
		}
		a.Warn("the secret %q is kept in %s", s.Name, place)
	}
	return d, nil
}

// registered is the entry of a server of the registry, as "goblin add" has been told of it.
func (a *App) registered(cmd *cobra.Command, args []string, n *addition) (s configedit.Server, err error) {
	as := strings.Join(args, " ")
	switch {
	case len(args) > 1 || cmd.ArgsLenAtDash() >= 0:
		return s, cli.Usage(cmd, "with --registry there is one name at most, that in the config")
	case as != "" && !config.ValidName(as):
		return s, cli.Usage(cmd, "%q cannot name a server", as)
	case len(n.env)+len(n.headers) > 0 || n.kind != "" || n.cwd != "":
		return s, cli.Usage(cmd, "--env, --header, --type and --cwd are for servers that you describe; --set and --use are for those of the registry")
	}
	n.kept = &keeper{store: a.Secrets()}
	n.from.Keep = n.kept.keep
	n.from.Free = func(name string) error {
		f, err := a.toEdit(configedit.Open)
		if err == nil && f.Keys(name) != nil {
			err = fmt.Errorf("there is a server %q already in %s; %s takes it out, and another NAME adds a second one", name, f.Path(), termtext.Goblin("remove", name))
		}
		return err
	}
	d, err := a.Define(cmd.Context(), n.registry, as, n.from)
	if err != nil {
		return s, interrupted(cmd.Context(), err)
	}
	if n.off {
		d.Keys["disabled"] = true
	}
	return configedit.Server{Name: d.Name, Comment: d.Comment, Keys: d.Keys}, nil
}

// entry gets a server of the registry.
func (a *App) entry(ctx context.Context, client *mcpregistry.Client, name string) (mcpregistry.Entry, error) {
	version := ""
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name, version = name[:at], name[at+1:]
	}
	e, cached, err := client.Get(ctx, name, version)
	switch {
	case err != nil:
		return e, registryError(err)
	case e.Status == "deleted":
		return e, cli.Fail(cli.CodeNotFound, "%s was deleted from the registry", e.Name)
	case e.Status == "deprecated":
		a.Warn("%s is deprecated: %s", e.Name, termtext.FirstLine(e.Description))
	}
	a.stale(client, cached)
	return e, nil
}

func consent(p *prompter, d *mcpregistry.Definition, given bool) error {
	switch {
	case given:
		return nil
	case !p.asks:
		return cli.Fail(cli.CodeUsage, "nothing is added: look at what it would run, above, and say --yes")
	}
	yes, err := p.confirm("Add it as " + d.Name + "?")
	if err == nil && !yes {
		err = cli.Fail(cli.CodeFailure, "nothing is added")
	}
	return err
}

// registryError gives a failure of the registry its exit code.
func registryError(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, mcpregistry.ErrNotFound):
		return cli.Fail(cli.CodeNotFound, "%w", err)
	case errors.Is(err, mcpregistry.ErrAddress):
		return cli.Fail(cli.CodeUsage, "%w", err)
	}
	return cli.Fail(cli.CodeConnect, "%w", err)
}

// choose takes one of the ways that a server can be run; the user's, where there is one to
// ask.
func choose(p *prompter, e *mcpregistry.Entry, use string) (*mcpregistry.Choice, error) {
	all := e.Choices()
	var usable []*mcpregistry.Choice
	var kinds, problems []string
	for i := range all {
		c := &all[i]
		kinds = append(kinds, c.Kind)
		switch {
		case use != "" && c.Kind != use:
		case c.Problem != "":
			problems = append(problems, termtext.Head(c.Problem, 400))
		default:
			usable = append(usable, c)
		}
	}
	switch {
	case len(all) == 0:
		return nil, cli.Fail(cli.CodeFailure, "%s has neither packages nor remotes in the registry", e.Name)
	case len(usable) == 0 && len(problems) == 0:
		return nil, cli.Fail(cli.CodeUsage, "%s has no %q; there is %s", e.Name, use, strings.Join(kinds, ", "))
	case len(usable) == 0:
		return nil, cli.Fail(cli.CodeFailure, "%s cannot be used: %s", e.Name, strings.Join(problems, "; "))
	case len(usable) == 1:
		return usable[0], nil
	}
	first := max(slices.IndexFunc(usable, installed), 0)
	if !p.asks {
		return usable[first], nil
	}
	p.say("%s can be used in several ways:", e.Name)
	for i, c := range usable {
		needs := ""
		if !installed(c) {
			needs = ", for which " + c.Command() + " has to be installed"
		}
		p.say("  %d  %s  %s%s", i+1, c.Kind, c.About, needs)
	}
	for {
		text, err := p.line(fmt.Sprintf("Which? [%d]", first+1))
		if err != nil {
			return nil, err
		}
		if text == "" {
			return usable[first], nil
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(usable) {
			return usable[n-1], nil
		}
		p.say("A number from 1 to %d, please.", len(usable))
	}
}

// installed reports whether the program that a choice needs is there.
func installed(c *mcpregistry.Choice) bool {
	if c.Command() == "" {
		return true
	}
	_, err := exec.LookPath(c.Command())
	return err == nil
}

// maxAnswers bounds how often one question is asked that takes several.
const maxAnswers = 50

// question asks for what is not answered; with few only what there is no doing without.
func question(p *prompter, all []mcpregistry.Question, answers map[string][]string, few bool) error {
	for _, q := range all {
		needed := q.Required && q.Default == ""
		if len(answers[q.Key]) > 0 || few && !needed {
			continue
		}
		if q.Description != "" {
			p.say("%s: %s", q.Key, termtext.Head(q.Description, 500))
		}
		for len(answers[q.Key]) < maxAnswers {
			text, err := p.ask(q)
			if err != nil {
				return err
			}
			if text == "" {
				if needed && len(answers[q.Key]) == 0 {
					p.say("%s is needed.", q.Key)
					continue
				}
				break
			}
			problem := q.Check(text)
			if problem != "" {
				p.say("It %s.", problem)
				continue
			}
			answers[q.Key] = append(answers[q.Key], text)
			if !q.Repeated {
				break
			}
		}
	}
	return nil
}

// ask asks one question once.
func (p *prompter) ask(q mcpregistry.Question) (string, error) {
	prompt := q.Key
	var notes []string
	switch {
	case len(q.Choices) > 0:
		notes = append(notes, strings.Join(q.Choices, ", "))
	case q.Format != "" && q.Format != "string":
		notes = append(notes, q.Format)
	case q.Placeholder != "":
		notes = append(notes, "such as "+q.Placeholder)
	}
	if q.Repeated {
		notes = append(notes, "several, an empty line ends")
	}
	if !q.Required {
		notes = append(notes, "may be left out")
	}
	if len(notes) > 0 {
		prompt += " (" + termtext.Head(strings.Join(notes, "; "), 400) + ")"
	}
	if q.Default != "" {
		prompt += " [" + termtext.Head(q.Default, 200) + "]"
	}
	if q.Secret {
		return p.hidden(prompt + ", not shown:")
	}
	return p.line(prompt + ":")
}

// present shows what a definition will do.
func (a *App) present(d *mcpregistry.Definition) {
	a.Warn("%s", d.Comment)
	if command, ok := d.Keys["command"].(string); ok {
		args, _ := d.Keys["args"].([]string)
		a.Warn("  runs     %s", termtext.Words(append([]string{command}, args...)...))
	}
	if url, ok := d.Keys["url"].(string); ok {
		a.Warn("  reaches  %s", url)
	}
	for key, title := range map[string]string{"env": "with", "headers": "sends"} {
		pairs, _ := d.Keys[key].(map[string]string)
		for _, name := range slices.Sorted(maps.Keys(pairs)) {
			a.Warn("  %-7s  %s=%s", title, name, termtext.Word(pairs[name]))
		}
	}
}
