package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/state"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// lists are the arguments of list and the values of --kind.
var lists = []string{"servers", "tools", "prompts", "resources", "templates"}

// oneArg requires one argument. what describes it in errors.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return cli.Usage(cmd, "%s needs %s", cli.CommandPath(cmd), what)
		case len(args) > 1:
			return cli.Usage(cmd, "%s takes only %s, but got %q too; quote names with spaces", cli.CommandPath(cmd), what, args[1])
		case args[0] == "":
			return cli.Usage(cmd, "%s needs %s, not an empty string", cli.CommandPath(cmd), what)
		}
		return nil
	}
}

// withJSON adds --json, which sets a.asJSON.
func (a *App) withJSON(usage string, cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.asJSON, "json", false, usage)
	return cmd
}

func (a *App) serverFlag(cmd *cobra.Command, server *string) {
	cli.NameFlag(cmd.Flags(), server, "server", "only this `SERVER`")
	_ = cmd.RegisterFlagCompletionFunc("server", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.complete("servers")(cmd, nil, typed)
	})
}

func onlyServer(name string) []string {
	if name == "" || name == registry.Local {
		return nil
	}
	return []string{name}
}

func (a *App) profileFlag(cmd *cobra.Command, profile *string, what string) {
	cli.NameFlag(cmd.Flags(), profile, "profile", what)
	_ = cmd.RegisterFlagCompletionFunc("profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		cfg, err := a.App.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return each(cfg.Profiles, func(p *config.Profile) string { return p.Name }), cobra.ShellCompDirectiveNoFileComp
	})
}

func (a *App) withProfile(cmd *cobra.Command) {
	a.profileFlag(cmd, &a.profile, "only entries that clients with this `PROFILE` see")
}

func kindFlag(cmd *cobra.Command, kind *string, usage string, known []string) {
	cli.NameFlag(cmd.Flags(), kind, "kind", "only entries of this `KIND`: "+usage)
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
}

// checkKind also accepts singulars.
func checkKind(cmd *cobra.Command, kind *string, known []string) error {
	if slices.Contains(known, *kind+"s") {
		*kind += "s"
	}
	if *kind != "" && !slices.Contains(known, *kind) {
		return cli.Usage(cmd, "--kind must be one of %s, not %q", strings.Join(known, ", "), *kind)
	}
	return nil
}

func checkMIME(cmd *cobra.Command, mime string) error {
	if _, err := registry.MIMEFilter(mime); err != nil {
		return cli.Usage(cmd, "--mime must be a MIME type or a pattern like 'text/*', not %q", mime)
	}
	return nil
}

// maxObject is the default of limits.frame, in bytes.
const maxObject = 128 << 20

// readObject reads a JSON object from a flag: the object itself, @FILE, or - for stdin.
func (a *App) readObject(flag, text string) ([]byte, error) {
	raw, err := []byte(text), error(nil)
	switch {
	case text == "":
		return nil, nil
	case text == "-":
		raw, err = io.ReadAll(io.LimitReader(a.In, maxObject))
	case strings.HasPrefix(text, "@"):
		raw, err = state.ReadNamed(text[1:], maxObject)
	}
	if err != nil {
		return nil, cli.Fail(cli.CodeUsage, "%s: cannot read %s", flag, reason(err))
	}
	if err := rawjson.Valid(raw); err != nil {
		return nil, cli.Fail(cli.CodeUsage, `%s takes a JSON object such as '{"name": "value"}', or @FILE, or - for stdin: %w`, flag, err)
	}
	if !rawjson.IsObject(raw) {
		return nil, cli.Fail(cli.CodeUsage, `%s must be a JSON object such as '{"name": "value"}', not %s`, flag, jsonType(raw))
	}
	return rawjson.OneLine(raw), nil
}

func reason(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Sprintf("%s: %v", failed.Path, failed.Err)
	}
	return err.Error()
}

func jsonType(raw []byte) string {
	var v any
	_ = json.Unmarshal(raw, &v) // the JSON is valid
	switch v.(type) {
	case []any:
		return "an array"
	case string:
		return "a string"
	case float64:
		return "a number"
	case bool:
		return "true or false"
	}
	return "null"
}
