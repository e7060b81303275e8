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
	"goblin/registry/candidate"
	"goblin/registry/termtext"
)

type registryFlags struct {
	server string   // name or name@version in the registry; or ""
	url    string   // of the registry; "" is the configured one
	use    string   // kind of package or remote; "" is any
	set    []string // KEY=VALUE answers
	yes    bool     // ask only for required values
}

func (f *registryFlags) add(flags *pflag.FlagSet) {
	cli.NameFlag(flags, &f.server, "registry", "add this `SERVER` from the registry, or SERVER@VERSION")
	cli.NameFlag(flags, &f.url, "registry-url", "use the registry at this `URL`")
	cli.NameFlag(flags, &f.use, "use", "with --registry, use this `KIND` of package or remote: npm, pypi, oci, nuget, mcpb, http, sse")
	flags.BoolVar(&f.yes, "yes", false, "with --registry, add it without asking")
	flags.StringArrayVar(&f.set, "set", nil, "with --registry, set a value, `KEY=VALUE`; ${VAR} stays a variable")
}

// registryServer stores the entry's secrets in n.secrets.
func (a *App) registryServer(cmd *cobra.Command, args []string, n *addFlags) (s configedit.Server, err error) {
	name := strings.Join(args, " ")
	switch {
	case len(args) > 1 || cmd.ArgsLenAtDash() >= 0:
		return s, cli.Usage(cmd, "--registry takes at most one name")
	case name != "" && !config.ValidName(name):
		return s, cli.Usage(cmd, "invalid server name %q", name)
	case len(n.env)+len(n.headers) > 0 || n.kind != "" || n.cwd != "":
		return s, cli.Usage(cmd, "--registry doesn't take --env, --header, --type or --cwd; use --set and --use")
	}
	n.secrets = a.Secrets().Begin()
	d, err := a.buildDefinition(cmd.Context(), name, n)
	if err != nil {
		return s, err
	}
	if n.disabled {
		d.Keys["disabled"] = true
	}
	return configedit.Server{Name: d.Name, Comment: d.Comment, Keys: d.Keys}, nil
}

// buildDefinition returns the definition of a registry server, named name or, if that is
// "", by the registry's short name. On a terminal it asks for missing values and for
// consent. It stores secrets only after consent.
func (a *App) buildDefinition(ctx context.Context, name string, n *addFlags) (*candidate.Definition, error) {
	f := &n.registry
	answers := map[string][]string{}
	for _, pair := range f.set {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" { // The value is not printed: it may be a secret.
			return nil, cli.Fail(cli.CodeUsage, "--set must be KEY=VALUE")
		}
		answers[key] = append(answers[key], value)
	}
	client, err := a.registryAt(f.url)
	if err != nil {
		return nil, err
	}
	e, err := a.registryEntry(ctx, client, f.server)
	if err != nil {
		return nil, err
	}
	name = cmp.Or(name, e.ShortName())
	if err := a.nameIsFree(name); err != nil {
		return nil, err
	}
	c, err := a.choosePackage(ctx, &e, f.use)
	if err != nil {
		return nil, err
	}
	if c.NeedsDownload() {
		a.Warn("downloading %s", c.Summary)
		state := config.StateFolder(a.Getenv)
		if state == "" {
			return nil, cli.Fail(cli.CodeConfig, "no folder for bundles; set HOME")
		}
		if err := client.Download(ctx, c, filepath.Join(state, "bundles")); err != nil {
			return nil, registryError(err)
		}
		defer c.Discard()
	}
	if a.InTTY {
		if err := a.askAll(ctx, c.Variables(), answers, f.yes); err != nil {
			return nil, err
		}
	}
	d, err := c.Build(name, answers)
	if err != nil {
		return nil, cli.Fail(cli.CodeUsage, "%w", err)
	}
	a.showDefinition(d)
	if err := a.consent(ctx, d, f.yes); err != nil {
		return nil, err
	}
	if err := c.Unpack(); err != nil {
		return nil, err
	}
	for _, s := range d.Secrets {
		place, err := n.secrets.Set(s.Name, s.Value)
		if err != nil {
			return nil, fmt.Errorf("store secret %q: %w", s.Name, err)
		}
		a.Warn("stored secret %q in %s", s.Name, place)
	}
	return d, nil
}

func (a *App) nameIsFree(name string) error {
	f, err := a.editableConfig(configedit.Open)
	if err == nil && f.Keys(name) != nil {
		err = nameTakenError(name, f)
	}
	return err
}

// registryEntry returns a registry server by name or name@version.
func (a *App) registryEntry(ctx context.Context, client *mcpregistry.Client, name string) (mcpregistry.Entry, error) {
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
	a.warnCached(client, cached)
	return e, nil
}

func (a *App) consent(ctx context.Context, d *candidate.Definition, given bool) error {
	switch {
	case given:
		return nil
	case !a.InTTY:
		return cli.Fail(cli.CodeUsage, "nothing was added; check the command above and use --yes")
	}
	yes, err := a.Confirm(ctx, "Add it as "+d.Name+"?")
	if err == nil && !yes {
		err = cli.Fail(cli.CodeFailure, "nothing was added")
	}
	return err
}

func registryError(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, mcpregistry.ErrNotFound):
		return cli.Fail(cli.CodeNotFound, "%w", err)
	case errors.Is(err, mcpregistry.ErrInvalidURL):
		return cli.Fail(cli.CodeUsage, "%w", err)
	}
	return cli.Fail(cli.CodeConnect, "%w", err)
}

// choosePackage lets the user choose on a terminal.
func (a *App) choosePackage(ctx context.Context, e *mcpregistry.Entry, use string) (*mcpregistry.Choice, error) {
	all := e.Choices()
	var usable []*mcpregistry.Choice
	var kinds, problems []string
	for i := range all {
		c := &all[i]
		kinds = append(kinds, c.Kind)
		switch {
		case use != "" && c.Kind != use:
		case c.Problem != "":
			problems = append(problems, termtext.Truncate(c.Problem, 400))
		default:
			usable = append(usable, c)
		}
	}
	switch {
	case len(all) == 0:
		return nil, cli.Fail(cli.CodeFailure, "%s has no packages or remotes in the registry", e.Name)
	case len(usable) == 0 && len(problems) == 0:
		return nil, cli.Fail(cli.CodeUsage, "%s has no %q, only %s", e.Name, use, strings.Join(kinds, ", "))
	case len(usable) == 0:
		return nil, cli.Fail(cli.CodeFailure, "%s cannot be used: %s", e.Name, strings.Join(problems, "; "))
	case len(usable) == 1:
		return usable[0], nil
	}
	first := max(slices.IndexFunc(usable, installed), 0)
	if !a.InTTY {
		return usable[first], nil
	}
	a.Say("%s has several packages or remotes:", e.Name)
	for i, c := range usable {
		needs := ""
		if !installed(c) {
			needs = ", needs " + c.Command() + " (not found in PATH)"
		}
		a.Say("  %d  %s  %s%s", i+1, c.Kind, c.Summary, needs)
	}
	for {
		text, err := a.Ask(ctx, fmt.Sprintf("Which one? [%d]", first+1))
		if err != nil {
			return nil, err
		}
		if text == "" {
			return usable[first], nil
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(usable) {
			return usable[n-1], nil
		}
		a.Say("Enter a number from 1 to %d.", len(usable))
	}
}

func installed(c *mcpregistry.Choice) bool {
	if c.Command() == "" {
		return true
	}
	_, err := exec.LookPath(c.Command())
	return err == nil
}

const maxAnswers = 50

// askAll asks unanswered questions. With requiredOnly, it asks only for required values
// without a default.
func (a *App) askAll(ctx context.Context, all []candidate.Variable, answers map[string][]string, requiredOnly bool) error {
	for _, q := range all {
		needed := q.Required && q.Default == ""
		if len(answers[q.Key]) > 0 || requiredOnly && !needed {
			continue
		}
		if q.Description != "" {
			a.Say("%s: %s", q.Key, termtext.Truncate(q.Description, 500))
		}
		for len(answers[q.Key]) < maxAnswers {
			text, err := a.askQuestion(ctx, q)
			if err != nil {
				return err
			}
			if text == "" {
				if needed && len(answers[q.Key]) == 0 {
					a.Say("%s is required.", q.Key)
					continue
				}
				break
			}
			problem := mcpregistry.CheckAnswer(&q, text)
			if problem != "" {
				a.Say("%s %s.", q.Key, problem)
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

func (a *App) askQuestion(ctx context.Context, q candidate.Variable) (string, error) {
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
		notes = append(notes, "one per line, end with an empty line")
	}
	if !q.Required {
		notes = append(notes, "optional")
	}
	if len(notes) > 0 {
		prompt += " (" + termtext.Truncate(strings.Join(notes, "; "), 400) + ")"
	}
	if q.Default != "" {
		prompt += " [" + termtext.Truncate(q.Default, 200) + "]"
	}
	if q.Secret {
		return a.AskHidden(ctx, prompt+" (hidden):")
	}
	return a.Ask(ctx, prompt+":")
}

func (a *App) showDefinition(d *candidate.Definition) {
	a.Warn("%s", d.Comment)
	if command, ok := d.Keys["command"].(string); ok {
		args, _ := d.Keys["args"].([]string)
		a.Warn("  runs     %s", termtext.QuoteWords(append([]string{command}, args...)...))
	}
	if url, ok := d.Keys["url"].(string); ok {
		a.Warn("  reaches  %s", url)
	}
	for key, title := range map[string]string{"env": "with", "headers": "sends"} {
		pairs, _ := d.Keys[key].(map[string]string)
		for _, name := range slices.Sorted(maps.Keys(pairs)) {
			a.Warn("  %-7s  %s=%s", title, name, termtext.QuoteWord(pairs[name]))
		}
	}
}
