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

// switchable are the commands that turn things off and on, each named by a list.
func (a *App) switchable() (all []*cobra.Command) {
	for _, list := range []string{"tools", "prompts", "resources", "templates"} {
		all = append(all, a.switchesOf(list))
	}
	return all
}

func (a *App) switchesOf(list string) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: list, GroupID: cli.GroupConfig, Short: "Turn " + list + " off and on for clients",
		Long: "Turn " + list + ` off and on for clients, all or those of a profile, without a change of the
config. It holds until it is changed back, also over restarts, and clients of a running
daemon hear of it at once. What is off does not exist for them.`,
		Example: "  goblin " + list + " list",
	}, a.turn(list, false), a.turn(list, true), a.listOff(list))
}

// examples of names of a list, as clients see them.
var examples = map[string][2]string{
	"tools": {"github_create_issue", "'github_delete_*'"}, "prompts": {"github_review", "'github_*'"},
	"resources": {"mcp://docs/note://todo", "'mcp://docs/*'"}, "templates": {"'mcp://docs/note://{name}'", "'mcp://docs/*'"},
}

func (a *App) turn(list string, on bool) *cobra.Command {
	var (
		profile string
		asJSON  bool
	)
	word, end := "off", "Clients see them no more"
	if on {
		word, end = "on", "Clients see them again, unless the config leaves them out"
	}
	cmd := &cobra.Command{
		Use: word + " NAME...", Short: "Turn " + list + " " + word,
		Long: fmt.Sprintf(`Turn %s %s. %s.

NAME is one that "goblin list %s" shows, with --profile as clients of that see it,
SERVER/NAME with the server's own name, or a glob on either. The server's own name is
enough if no other has it.`, list, word, end, list),
		Example: fmt.Sprintf("  goblin %s %s %s\n  goblin %[1]s %[2]s %[4]s --profile coding", list, word, examples[list][0], examples[list][1]),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return cli.Usage(cmd, "%s needs names; \"%s\" shows them", cli.Called(cmd), a.Line("list", list))
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return a.complete(list)(cmd, nil, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, store, err := a.switched(profile)
			if err != nil {
				return err
			}
			things, err := a.thingsCalled(cmd.Context(), cfg, store, list, profile, args)
			if err != nil {
				return interrupted(cmd.Context(), err)
			}
			known := make([]state.ToggleEntry, len(things))
			for i, t := range things {
				known[i] = state.ToggleEntry{Profile: profile, Server: t.Server, Kind: strings.TrimSuffix(list, "s"), Name: t.Name, Since: time.Now().UTC().Truncate(time.Second)}
			}
			before := store.Off()
			if err := store.Set(on, known...); err != nil {
				return err
			}
			a.awaitDaemon(cmd.Context(), cfg, daemon.OffQuery{Kind: list, Profile: profile})
			return a.answer(asJSON, map[string]any{word: Names(things)}, told(things, known, before, on, profile))
		},
	}
	a.ofProfile(cmd, &profile, "only for clients of this `PROFILE`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// ofProfile adds --profile to a command, and its completion.
func (a *App) ofProfile(cmd *cobra.Command, profile *string, what string) {
	cli.Name(cmd.Flags(), profile, "profile", what)
	_ = cmd.RegisterFlagCompletionFunc("profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		cfg, err := a.App.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return each(cfg.Profiles, func(p *config.Profile) string { return p.Name }), cobra.ShellCompDirectiveNoFileComp
	})
}

// switched is the config with what is off in it.
func (a *App) switched(profile string) (*config.Config, *state.ToggleStore, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, nil, err
	}
	if _, ok := cfg.Profile(profile); !ok && profile != "" {
		return nil, nil, cli.Fail(cli.CodeNotFound, "no profile %q%s", profile, cfg.ProfileMeant(profile))
	}
	path := a.Off(cfg)
	switch {
	case cfg.Demo:
		return nil, nil, cli.Fail(cli.CodeConfig, "there is no config yet, and what is off in the demo is not kept; goblin init makes a config")
	case path == "":
		return nil, nil, cli.Fail(cli.CodeConfig, "there is no folder for what is off: set HOME or XDG_STATE_HOME")
	}
	store, err := state.OpenToggles(path)
	if file, ok := errors.AsType[*state.ToggleFileError](err); ok && file.Restored() {
		a.Warn("%s", err)
		err = nil
	}
	return cfg, store, err
}

// warnUnknownOff warns of a damaged file of what is off: entries may be hidden for it.
func (a *App) warnUnknownOff(cfg *config.Config) {
	if path := a.Off(cfg); path != "" {
		if _, err := state.OpenToggles(path); err != nil {
			a.Warn("%s", err)
		}
	}
}

// awaitDaemon waits until the running daemon, if there is one, has taken over what is off.
func (a *App) awaitDaemon(ctx context.Context, cfg *config.Config, q daemon.OffQuery) {
	if place, err := a.Place(cfg.Path); err == nil {
		_, _ = daemon.Remote{Place: place}.Off(ctx, q) // it would have seen the file by itself a little later
	}
}

// thingsCalled finds what names mean to clients of a profile, "" for all: in what servers list, and
// in what is off.
func (a *App) thingsCalled(ctx context.Context, cfg *config.Config, store *state.ToggleStore, list, profile string, names []string) ([]Thing, error) {
	kind := strings.TrimSuffix(list, "s")
	book := NewNameIndex(kind)
	book.Profile = profile
	p, ok := cfg.Profile(profile)
	foreign := func(server string) bool {
		s, known := cfg.Server(server)
		return ok && known && !p.Has(s)
	}
	err := a.with(ctx, cfg, nil, func(g Gateway) error {
		all, err := g.List(ctx, daemon.ListQuery{Kind: list})
		if err != nil {
			return err
		}
		for i := range all {
			if server, name, listed := all[i].Server, all[i].Original(), all[i].Listed(); foreign(server) {
				book.Outside = append(book.Outside, Thing{Server: server, Name: name, Listed: listed})
			} else {
				book.Add(server, name, listed)
			}
		}
		if !ok {
			return nil
		}
		all, err = g.List(ctx, daemon.ListQuery{Kind: list, Profile: profile, Every: true})
		for i := range all {
			if s, ok := cfg.Server(all[i].Server); ok && p.Has(s) {
				book.See(s.Name, all[i].Original(), all[i].Listed())
			}
		}
		return err
	})
	for _, off := range store.Off() {
		if off.Kind == kind && (!foreign(off.Server) || off.Profile == profile) {
			book.Add(off.Server, off.Name, "")
		}
	}
	if err != nil {
		return nil, err
	}
	return book.Find(names...)
}

// told says what is off or on now, and what was before.
func told(things []Thing, known, before []state.ToggleEntry, on bool, profile string) string {
	var did, was, still []string
	for i := range things {
		off := slices.ContainsFunc(before, func(s state.ToggleEntry) bool { return s.Same(&known[i]) })
		whole := known[i]
		whole.Profile = ""
		name := shownName(things[i].String())
		switch {
		case off != on:
			was = append(was, name)
		default:
			did = append(did, name)
		}
		if on && profile != "" && slices.ContainsFunc(before, func(s state.ToggleEntry) bool { return s.Same(&whole) }) {
			still = append(still, name)
		}
	}
	word, whose := "Off", "all clients"
	if on {
		word = "On"
	}
	if profile != "" {
		whose = fmt.Sprintf("clients of profile %q", profile)
	}
	var text strings.Builder
	if len(did) > 0 {
		fmt.Fprintf(&text, "%s for %s: %s.\n", word, whose, strings.Join(did, ", "))
	}
	if len(was) > 0 {
		fmt.Fprintf(&text, "%s already: %s.\n", word, strings.Join(was, ", "))
	}
	if len(still) > 0 {
		fmt.Fprintf(&text, "Off for all clients, so also for these: %s; turn them on without --profile.\n", strings.Join(still, ", "))
	}
	return text.String()
}

func (a *App) listOff(list string) *cobra.Command {
	var (
		q      = daemon.OffQuery{Kind: list, All: true}
		asJSON bool
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List all " + list + " with their states",
		Long: "List all " + list + ` of all servers, with the state of each and the reason:
  listed             clients see it
  filtered           the config leaves it out
  unapproved         its definition changed; see "goblin approve"
  disabled           you disabled it
  hidden by profile  the profile leaves it out
  found by search    it is not listed; clients find it by searches
Without --profile, the states apply to clients without a profile.`,
		Example: "  goblin " + list + " list\n  goblin " + list + " list --profile coding --json",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			cfg, err := a.Load()
			if err != nil {
				return err
			}
			if _, ok := cfg.Profile(q.Profile); !ok && q.Profile != "" {
				return cli.Fail(cli.CodeNotFound, "no profile %q%s", q.Profile, cfg.ProfileMeant(q.Profile))
			}
			a.warnUnknownOff(cfg)
			var rows []daemon.Off
			var servers []daemon.Server
			err = a.with(ctx, cfg, nil, func(g Gateway) error {
				if rows, err = g.Off(ctx, q); err != nil {
					return err
				}
				status, err := g.Status(ctx)
				servers = status.Servers
				return err
			})
			if err != nil {
				return interrupted(ctx, err)
			}
			a.warnMissing(servers, nil)
			if asJSON {
				return a.json(rows)
			}
			return a.printStates(list, rows)
		},
	}
	a.ofProfile(cmd, &q.Profile, "for clients of this `PROFILE`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// printStates prints a table of entries with the state of each.
func (a *App) printStates(list string, rows []daemon.Off) error {
	if len(rows) == 0 && a.OutTTY {
		a.Warn("there are no %s", list)
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
	return t.render(a.Out, a.Columns)
}
