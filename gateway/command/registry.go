package command

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/mcpregistry"
	"goblin/registry/termtext"
)

func (a *App) registry() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:     "registry",
		GroupID: cli.GroupAsk,
		Short:   "Search a registry for servers",
		Long: `Search the official MCP registry, or another one with the same API (v0.1), for
servers.`,
		Example: `  goblin registry search github
  goblin registry search postgres --json | jq -r '.servers[].name'`,
	}, a.registrySearch())
}

const mostServers = 1000

func (a *App) registrySearch() *cobra.Command {
	var (
		address string
		limit   int
	)
	cmd := a.withJSON("print a JSON object with the registry's entries", &cobra.Command{
		Use:   "search WORDS",
		Short: "Find servers in the registry",
		Long: `Find servers with all words in their names, titles and descriptions. The registry
itself searches names for the longest word. RUNS lists the packages (npm, pypi,
oci, nuget, mcpb) and remotes (http, sse) that Goblin can use.

The registry is --url, $GOBLIN_REGISTRY, "registry" in the config, or the
official one, in this order. Answers are cached for ten minutes; an older answer
is used if the registry can't be reached. If nothing is found, the exit code is 7.`,
		Example: `  goblin registry search github
  goblin registry search postgres read --limit 5`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case strings.TrimSpace(strings.Join(args, " ")) == "":
				return cli.Usage(cmd, "%s needs search words", cli.CommandPath(cmd))
			case limit < 1 || limit > mostServers:
				return cli.Usage(cmd, "--limit must be a number from 1 to %d, not %d", mostServers, limit)
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.registryAt(address)
			if err != nil {
				return err
			}
			words := strings.Fields(strings.Join(args, " "))
			found, err := client.Search(cmd.Context(), words, limit)
			if err != nil {
				return registryError(err)
			}
			return a.printRegistry(client, found, words)
		},
	})
	cli.NameFlag(cmd.Flags(), &address, "url", "use the registry at this `URL`")
	cmd.Flags().IntVar(&limit, "limit", foundFew, "show at most this `NUMBER` of servers, up to 1000")
	return cmd
}

// registryAt returns the registry at an address, or the configured one for "".
func (a *App) registryAt(address string) (*mcpregistry.Client, error) {
	if address == "" {
		if address = a.Getenv("GOBLIN_REGISTRY"); address == "" {
			cfg, err := a.Load()
			if err != nil {
				return nil, err
			}
			address = cmp.Or(cfg.Registry, mcpregistry.OfficialURL)
		}
	}
	return &mcpregistry.Client{BaseURL: address, Version: a.Version.Version, Cache: mcpregistry.OpenCache(a.Getenv)}, nil
}

func (a *App) warnCached(client *mcpregistry.Client, cached time.Time) {
	if !cached.IsZero() {
		a.Warn("cannot reach %s; showing its answer of %s", client.BaseURL, cached.Local().Format("2006-01-02 15:04"))
	}
}

func (a *App) printRegistry(client *mcpregistry.Client, found *mcpregistry.SearchResult, words []string) error {
	a.warnCached(client, found.Cached)
	if found.Invalid > 0 {
		a.Warn("skipped %s of the registry: invalid", countOf(found.Invalid, "entry", "entries"))
	}
	err := a.print(found, func() error {
		t := table{header: []string{"NAME", "VERSION", "RUNS", "DESCRIPTION"}}
		for i := range found.Servers {
			e := &found.Servers[i]
			about := termtext.FirstLine(e.Description)
			if e.Status == "deprecated" {
				about = "(deprecated) " + about
			}
			t.add(e.Name, termtext.Cut(termtext.Line(e.Version), 20), kindsOf(e), about)
		}
		if err := a.printTable(&t); err != nil || !found.HasMore || !a.OutTTY {
			return err
		}
		a.Warn("more servers found; use --limit to show them")
		return nil
	})
	if err == nil && len(found.Servers) == 0 {
		return cli.Fail(cli.CodeNotFound, "nothing found for %q", strings.Join(words, " "))
	}
	return err
}

func kindsOf(e *mcpregistry.Entry) string {
	var all []string
	seen := map[string]bool{}
	for _, c := range e.Choices() {
		if c.Problem == "" && !seen[c.Kind] {
			seen[c.Kind] = true
			all = append(all, c.Kind)
		}
	}
	return cmp.Or(strings.Join(all, ", "), "unsupported")
}
