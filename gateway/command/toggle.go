package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/state"
	"goblin/registry/termtext"
)

func (a *App) toggleCommands() (all []*cobra.Command) {
	for _, list := range []string{"tools", "prompts", "resources", "templates"} {
		all = append(all, a.toggleGroup(list))
	}
	return all
}

func (a *App) toggleGroup(list string) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: list, GroupID: cli.GroupVisibility, Short: "Disable and enable " + list + " for clients",
		Long: "Disable and enable " + list + ` for all clients, or for those of a profile,
without changing the config. Changes apply at once and are permanent. Disabled
entries are hidden from clients.`,
		Example: "  goblin " + list + " list",
	}, a.toggleCommand(list, false), a.toggleCommand(list, true), a.listToggles(list))
}

var examples = map[string][2]string{
	"tools": {"github_create_issue", "'github_delete_*'"}, "prompts": {"github_review", "'github_*'"},
	"resources": {"mcp://docs/note://todo", "'mcp://docs/*'"}, "templates": {"'mcp://docs/note://{name}'", "'mcp://docs/*'"},
}

func (a *App) toggleCommand(list string, on bool) *cobra.Command {
	var profile string
	word, verb, end := "off", "Disable", ""
	if on {
		word, verb, end = "on", "Enable", " Entries that the config filters stay hidden."
	}
	cmd := a.withJSON("print a JSON object", &cobra.Command{
		Use: word + " NAME...", Short: verb + " " + list + " for clients",
		Long: fmt.Sprintf(`%s %s for clients.%s

NAME is a listed name ("goblin list %[2]s"), SERVER/NAME with the server's
own name, or a glob for either. The own name alone works if no other server has
it. With --profile, NAME may also be the name that clients of the profile see.`, verb, list, end),
		Example: fmt.Sprintf("  goblin %s %s %s\n  goblin %[1]s %[2]s %[4]s --profile coding", list, word, examples[list][0], examples[list][1]),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return cli.Usage(cmd, "%s needs names, as listed by \"%s\"", cli.CommandPath(cmd), a.CommandLine("list", list))
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return a.complete(list)(cmd, nil, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, store, err := a.openToggles(profile)
			if err != nil {
				return err
			}
			entries, err := a.findEntries(cmd.Context(), cfg, store, list, profile, args)
			if err != nil {
				return err
			}
			toggles := make([]state.ToggleEntry, len(entries))
			for i, e := range entries {
				toggles[i] = state.ToggleEntry{Profile: profile, Server: e.server, Kind: strings.TrimSuffix(list, "s"), Name: e.own, Since: time.Now().UTC().Truncate(time.Second)}
			}
			before := store.Disabled()
			if err := store.Set(on, toggles...); err != nil {
				return err
			}
			a.awaitDaemon(cmd.Context(), cfg, daemon.HiddenQuery{Kind: list, Profile: profile})
			return a.printResult(map[string]any{word: entryNames(entries)}, toggleText(entries, toggles, before, on, profile))
		},
	})
	a.profileFlag(cmd, &profile, "only for clients of this `PROFILE`")
	return cmd
}

func (a *App) openToggles(profile string) (*config.Config, *state.ToggleStore, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, nil, err
	}
	if _, ok := cfg.Profile(profile); !ok && profile != "" {
		return nil, nil, cli.Fail(cli.CodeNotFound, "no profile %q%s", profile, cfg.SuggestProfile(profile))
	}
	path := a.TogglesPath(cfg)
	switch {
	case cfg.Demo:
		return nil, nil, cli.Fail(cli.CodeConfig, "no config: demo changes are not saved; run \"goblin init\" first")
	case path == "":
		return nil, nil, cli.Fail(cli.CodeConfig, "no folder for disabled entries; set HOME or XDG_STATE_HOME")
	}
	store, err := state.OpenToggles(path)
	if file, ok := errors.AsType[*state.ToggleFileError](err); ok && file.Restored() {
		a.Warn("%s", err)
		err = nil
	}
	return cfg, store, err
}

// warnDamagedToggles warns of a damaged file, because it may hide entries.
func (a *App) warnDamagedToggles(cfg *config.Config) {
	if path := a.TogglesPath(cfg); path != "" {
		if _, err := state.OpenToggles(path); err != nil {
			a.Warn("%s", err)
		}
	}
}

func (a *App) awaitDaemon(ctx context.Context, cfg *config.Config, q daemon.HiddenQuery) {
	if place, err := a.FindDaemon(cfg.Path); err == nil {
		_, _ = daemon.Remote{Place: place}.HiddenEntries(ctx, q) // a request makes it read the file now
	}
}

// findEntries finds entries by the names that clients of a profile see; "" is all
// clients. It searches the lists of the servers and the disabled entries.
func (a *App) findEntries(ctx context.Context, cfg *config.Config, store *state.ToggleStore, list, profile string, names []string) ([]*namedEntry, error) {
	x := nameIndex{noun: strings.TrimSuffix(list, "s"), profile: profile}
	p, ok := cfg.Profile(profile)
	outside := func(server string) bool {
		s, known := cfg.Server(server)
		return ok && known && !p.Has(s)
	}
	err := a.withGateway(ctx, cfg, nil, func(g Gateway) error {
		all, err := g.List(ctx, daemon.ListQuery{Kind: list})
		if err != nil {
			return err
		}
		for i := range all {
			if server, own, listed := all[i].Server, all[i].OriginalLabel(), all[i].ListedName(); outside(server) {
				x.outside = append(x.outside, &namedEntry{server: server, own: own, listed: listed})
			} else {
				x.entry(server, own).listed = listed
			}
		}
		if !ok {
			return nil
		}
		all, err = g.List(ctx, daemon.ListQuery{Kind: list, Profile: profile, WithHidden: true})
		for i := range all {
			if s, ok := cfg.Server(all[i].Server); ok && p.Has(s) {
				x.entry(s.Name, all[i].OriginalLabel()).inProfile = all[i].ListedName()
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, off := range store.Disabled() {
		if off.Kind == x.noun && (!outside(off.Server) || off.Profile == profile) {
			x.entry(off.Server, off.Name)
		}
	}
	return x.find(names...)
}

func toggleText(entries []*namedEntry, toggles, before []state.ToggleEntry, on bool, profile string) string {
	wasOff := func(t state.ToggleEntry) bool {
		return slices.ContainsFunc(before, func(s state.ToggleEntry) bool { return s.Equal(&t) })
	}
	var did, was, still []string
	for i, e := range entries {
		name := quoteName(e.String())
		if wasOff(toggles[i]) == on {
			did = append(did, name)
		} else {
			was = append(was, name)
		}
		forAll := toggles[i]
		forAll.Profile = ""
		if on && profile != "" && wasOff(forAll) {
			still = append(still, name)
		}
	}
	word, whose := "Disabled", "all clients"
	if on {
		word = "Enabled"
	}
	if profile != "" {
		whose = fmt.Sprintf("clients of profile %q", profile)
	}
	var text strings.Builder
	if len(did) > 0 {
		fmt.Fprintf(&text, "%s for %s: %s.\n", word, whose, strings.Join(did, ", "))
	}
	if len(was) > 0 {
		fmt.Fprintf(&text, "Already %s: %s.\n", strings.ToLower(word), strings.Join(was, ", "))
	}
	if len(still) > 0 {
		fmt.Fprintf(&text, "Still disabled for all clients: %s; enable them without --profile.\n", strings.Join(still, ", "))
	}
	return text.String()
}

func (a *App) listToggles(list string) *cobra.Command {
	q := daemon.HiddenQuery{Kind: list, All: true}
	cmd := a.withJSON("print a JSON array", &cobra.Command{
		Use: "list", Short: "List all " + list + " with their states",
		Long: "List all " + list + ` of all servers with their states. Without --profile,
the states apply to clients without a profile.

  listed             clients see it
  filtered           the config filters it out
  unapproved         its definition changed; see "goblin approve"
  disabled           you disabled it
  hidden by profile  the profile filters it out
  found by search    it is not listed, but clients can find it by search`,
		Example: "  goblin " + list + " list\n  goblin " + list + " list --profile coding --json",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			cfg, err := a.Load()
			if err != nil {
				return err
			}
			if _, ok := cfg.Profile(q.Profile); !ok && q.Profile != "" {
				return cli.Fail(cli.CodeNotFound, "no profile %q%s", q.Profile, cfg.SuggestProfile(q.Profile))
			}
			a.warnDamagedToggles(cfg)
			var rows []daemon.HiddenEntry
			var servers []daemon.Server
			err = a.withGateway(ctx, cfg, nil, func(g Gateway) error {
				if rows, err = g.HiddenEntries(ctx, q); err != nil {
					return err
				}
				status, err := g.Status(ctx)
				servers = status.Servers
				return err
			})
			if err != nil {
				return err
			}
			a.warnMissing(servers, nil)
			return a.print(rows, func() error { return a.printStates(list, rows) })
		},
	})
	a.profileFlag(cmd, &q.Profile, "for clients of this `PROFILE`")
	return cmd
}

func (a *App) printStates(list string, rows []daemon.HiddenEntry) error {
	if len(rows) == 0 && a.OutTTY {
		a.Warn("no %s", list)
	}
	t := table{header: []string{"NAME", "SERVER", "STATE", "SINCE", "REASON"}}
	for i := range rows {
		r := &rows[i]
		since := ""
		if !r.Since.IsZero() {
			since = termtext.Age(time.Since(r.Since)) + " ago"
		}
		t.add(r.Label(), r.Server, string(r.State), since, r.Reason)
	}
	return a.printTable(&t)
}
