package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/registry/termtext"
)

func (a *App) validate() *cobra.Command {
	var schema bool
	cmd := a.withJSON("print a JSON object", &cobra.Command{
		Use:     "validate",
		GroupID: cli.GroupDiagnose,
		Short:   "Check the config",
		Long: `Check the config and report every mistake with its file and line. It starts no
server. With mistakes, the exit code is 3; warnings alone keep it at 0.

It also warns of tool descriptions that clients will cut, and of filters that
match nothing, if the running daemon or a cache has the tools.`,
		Example: `  goblin validate
  goblin validate --config claude_desktop_config.json
  goblin validate --json | jq '.errors[]'
  goblin validate --schema > goblin.schema.json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if schema {
				_, err := a.Out.Write(config.Schema())
				return err
			}
			cfg, err := a.Load()
			if err == nil {
				err = configMistakes(cfg)
			}
			if err == nil && !cfg.Demo {
				cfg.Warnings = append(cfg.Warnings, a.listWarnings(cmd.Context(), cfg)...)
			}
			if err == nil {
				cfg.Warnings = append(cfg.Warnings, a.WarnUnreadable(cfg)...)
				cfg.Warnings = append(cfg.Warnings, a.unsetSecrets(cfg)...)
			}
			if a.asJSON {
				return a.printValidity(cfg, err)
			}
			if err != nil {
				if mistakes, ok := errors.AsType[*config.Errors](err); ok {
					a.warnings(mistakes.Warnings)
				}
				return err
			}
			a.warnings(cfg.Warnings)
			return a.printText(a.Mask().String(summary(cfg)))
		},
	})
	cmd.Flags().BoolVar(&schema, "schema", false, "print the config's JSON Schema for editors")
	return cmd
}

// configMistakes returns the mistakes that don't prevent Goblin from starting, or nil.
func configMistakes(cfg *config.Config) error {
	wrong := cfg.Mistakes
	if cfg.Gateway.Listen != "" && cfg.Gateway.NoToken.Text != "" {
		wrong = append(slices.Clone(wrong), cfg.Gateway.NoToken)
	}
	if len(wrong) == 0 {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(cfg.Warnings), func(p config.Problem) bool { return slices.Contains(wrong, p) })
	return &config.Errors{Problems: wrong, Warnings: others}
}

// unsetSecrets only reads the list of names, so no keyring must be unlocked.
func (a *App) unsetSecrets(cfg *config.Config) (warnings []config.Problem) {
	known, err := a.Secrets().List()
	if err != nil {
		return nil // "goblin secret list" reports it
	}
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		if s.Disabled {
			continue
		}
		for name, line := range s.KeyringNames() {
			if !slices.Contains(known, name) {
				warnings = append(warnings, config.Problem{File: cfg.Path, Line: line, Text: fmt.Sprintf(
					"server %[2]q: ${keyring:%[1]s} is not set; run: %[3]s", name, s.Name, termtext.Goblin("secret set", name))})
			}
		}
	}
	slices.SortFunc(warnings, func(a, b config.Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text)) })
	return warnings
}

func (a *App) warnings(list []config.Problem) {
	for _, w := range list {
		place, text, _ := strings.Cut(w.String(), ": ")
		fmt.Fprintf(a.Err, "%s: warning: %s\n", termtext.Line(a.Mask().String(place)), termtext.Line(a.Mask().String(text)))
	}
}

func summary(cfg *config.Config) string {
	var out strings.Builder
	content := termtext.Count(len(cfg.Servers), "server")
	if len(cfg.Rules) > 0 {
		content += ", " + termtext.Count(len(cfg.Rules), "rule")
	}
	fmt.Fprintf(&out, "%s is valid%s: %s.\n", capital(configName(cfg)), warningsNote(len(cfg.Warnings)), content)
	t := table{header: []string{"SERVER", "TYPE", "STATE", "NOTE"}}
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		state, note := "enabled", ""
		switch {
		case s.Disabled: // its problems don't matter
			state = "disabled"
		case s.Problem != "":
			state, note = "cannot start", s.Problem
		}
		t.add(s.Name, string(s.Type), state, note)
	}
	if len(cfg.Servers) > 0 {
		out.WriteString(t.render(0))
	}
	if cfg.Gateway.Listen != "" {
		fmt.Fprintf(&out, "HTTP: http://%s/mcp\n", cfg.Gateway.Listen)
	}
	return out.String()
}

func warningsNote(warnings int) string {
	if warnings == 0 {
		return ""
	}
	return ", with " + termtext.Count(warnings, "warning")
}

func capital(s string) string {
	if rest, ok := strings.CutPrefix(s, "the "); ok {
		return "The " + rest
	}
	return s
}

type mistake struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

func (a *App) mistakes(list []config.Problem) []mistake {
	out := make([]mistake, len(list))
	for i, p := range list {
		out[i] = mistake{File: p.File, Line: p.Line, Text: a.Mask().String(p.Text)}
	}
	return out
}

func (a *App) printValidity(cfg *config.Config, failed error) error {
	type server struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		Disabled bool   `json:"disabled,omitempty"`
		Problem  string `json:"problem,omitempty"`
	}
	report := struct {
		Valid    bool      `json:"valid"`
		Config   string    `json:"config,omitempty"`
		Demo     bool      `json:"demo,omitempty"`
		Servers  []server  `json:"servers"`
		Errors   []mistake `json:"errors"`
		Warnings []mistake `json:"warnings"`
	}{Valid: failed == nil, Servers: []server{}, Errors: []mistake{}, Warnings: []mistake{}}
	var found *config.Errors
	switch {
	case failed == nil:
		report.Config, report.Demo, report.Warnings = cfg.Path, cfg.Demo, a.mistakes(cfg.Warnings)
		for i := range cfg.Servers {
			s := &cfg.Servers[i]
			entry := server{Name: s.Name, Type: string(s.Type), Disabled: s.Disabled}
			if !s.Disabled {
				entry.Problem = a.Mask().String(s.Problem)
			}
			report.Servers = append(report.Servers, entry)
		}
	case errors.As(failed, &found):
		report.Errors, report.Warnings = a.mistakes(found.Problems), a.mistakes(found.Warnings)
	default:
		return failed
	}
	if err := a.printJSON(report); err != nil {
		return err
	}
	if failed != nil {
		return errReported(cli.CodeConfig)
	}
	return nil
}
