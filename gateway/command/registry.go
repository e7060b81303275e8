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
		Short:   "Look for servers in a registry",
		Long: `Look for servers in the official registry of MCP servers, or in another one with the
same API (v0.1).`,
		Example: `  goblin registry search github
  goblin registry search postgres --json | jq -r '.servers[].name'`,
	}, a.registrySearch())
}

// mostServers is the maximum of --limit.
const mostServers = 1000

func (a *App) registrySearch() *cobra.Command {
	var (
		address string
		limit   int
	)
	cmd := a.withJSON("print an object with the servers, as the registry describes them", &cobra.Command{
		Use:   "search WORDS",
		Short: "Find servers in the registry",
		Long: `Find servers whose names, titles and descriptions have all words; the registry itself
looks for the longest word, in names. RUNS says how each can be run: as a package of
npm, PyPI, NuGet or as an image (oci), or that it is reached by HTTP.

The registry is the one that --url names, else $GOBLIN_REGISTRY, else "registry" in
the config, else the official one. Its answers are kept for ten minutes, and longer
where it cannot be reached. If nothing is found, the exit code is 7.`,
		Example: `  goblin registry search github
  goblin registry search postgres read --limit 5`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case strings.TrimSpace(strings.Join(args, " ")) == "":
				return cli.Usage(cmd, "%s needs words to look for", cli.CommandPath(cmd))
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
	cli.NameFlag(cmd.Flags(), &address, "url", "ask the registry at this `URL`")
	cmd.Flags().IntVar(&limit, "limit", foundFew, "at most this `NUMBER` of servers, up to 1000")
	return cmd
}

// registryAt returns the registry at an address, "" for the configured one.
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

// warnCached warns of an answer from the cache.
func (a *App) warnCached(client *mcpregistry.Client, cached time.Time) {
	if !cached.IsZero() {
		a.Warn("%s is out of reach; this is what it said on %s", client.BaseURL, cached.Local().Format("2006-01-02 15:04"))
	}
}

func (a *App) printRegistry(client *mcpregistry.Client, found *mcpregistry.SearchResult, words []string) error {
	a.warnCached(client, found.Cached)
	if found.Invalid > 0 {
		a.Warn("%s of the registry left out: not as they have to be", countOf(found.Invalid, "entry", "entries"))
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
		a.Warn("there are more; --limit shows them")
		return nil
	})
	if err == nil && len(found.Servers) == 0 {
		return cli.Fail(cli.CodeNotFound, "nothing found for %q", strings.Join(words, " "))
	}
	return err
}

// kindsOf returns the kinds of packages and remotes that Goblin can use, each once.
func kindsOf(e *mcpregistry.Entry) string {
	var all []string
	seen := map[string]bool{}
	for _, c := range e.Choices() {
		if c.Problem == "" && !seen[c.Kind] {
			seen[c.Kind] = true
			all = append(all, c.Kind)
		}
	}
	return cmp.Or(strings.Join(all, ", "), "not by Goblin")
}
