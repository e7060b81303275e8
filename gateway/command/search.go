package command

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/registry/termtext"
)

const (
	foundFew  = 20   // default of --limit
	foundMost = 1000 // maximum of --limit
)

func (a *App) search() *cobra.Command {
	q := daemon.SearchQuery{}
	cmd := a.withJSON("print a JSON object with the hits and their number", &cobra.Command{
		Use:     "search WORDS",
		GroupID: cli.GroupAsk,
		Short:   "Find tools, prompts, resources and templates",
		Long: `Search names, titles, descriptions, URIs and arguments, and print the best hits
first. Typing errors, prefixes and other forms of a word match, too. If nothing
is found, the exit code is 7.

Uses the running daemon; otherwise starts the servers temporarily.`,
		Example: `  goblin search what time is it
  goblin search moon --kind resources
  goblin search welcome --mime 'text/*' --server notes
  goblin search send mail --kind tools --json | jq -r '.hits[].name'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, " ")) == "" {
				return cli.Usage(cmd, "%s needs search words", cli.CommandPath(cmd))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Text = strings.Join(args, " ")
			if err := checkKind(cmd, &q.Kind, lists[1:]); err != nil {
				return err
			}
			if err := checkMIME(cmd, q.MIME); err != nil {
				return err
			}
			if q.Limit < 1 || q.Limit > foundMost {
				return cli.Usage(cmd, "--limit must be a number from 1 to %d, not %d", foundMost, q.Limit)
			}
			cfg, err := a.Load()
			if err != nil {
				return err
			}
			return a.searchFor(cmd.Context(), cfg, q)
		},
	})
	kindFlag(cmd, &q.Kind, "tools, prompts, resources or templates", lists[1:])
	a.serverFlag(cmd, &q.Server)
	a.withProfile(cmd)
	cli.NameFlag(cmd.Flags(), &q.MIME, "mime", "only entries of this MIME `TYPE`; may contain *, as in 'image/*'")
	cmd.Flags().IntVar(&q.Limit, "limit", foundFew, "show at most this `NUMBER` of hits, up to 1000")
	return cmd
}

func (a *App) searchFor(ctx context.Context, cfg *config.Config, q daemon.SearchQuery) error {
	only := onlyServer(q.Server)
	if only != nil {
		if err := checkUsable(cfg, q.Server); err != nil {
			return err
		}
	}
	var answer daemon.SearchAnswer
	var status daemon.Status
	err := a.withGateway(ctx, cfg, only, func(g Gateway) (err error) {
		if answer, err = g.Search(ctx, q); err == nil {
			status, err = g.Status(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	a.warnMissing(status.Servers, only)
	if answer.Weak && len(answer.Hits) > 0 {
		a.Warn("no good match for %q; showing the closest entries", q.Text)
	}
	answer.Hits = append([]daemon.Hit{}, answer.Hits...) // [] instead of null
	err = a.print(answer, func() error { return a.printHits(q, answer) })
	if err == nil && len(answer.Hits) == 0 {
		return cli.Fail(cli.CodeNotFound, "nothing found for %q", q.Text)
	}
	return err
}

func (a *App) warnMissing(servers []daemon.Server, only []string) {
	for _, s := range servers {
		if lacksEntries(s) && (only == nil || slices.Contains(only, s.Name)) {
			a.Warn("%s", stateText(s))
		}
	}
}

func (a *App) printHits(q daemon.SearchQuery, answer daemon.SearchAnswer) error {
	t := table{header: []string{"KIND", "NAME OR URI", "SERVER", "DESCRIPTION"}}
	for _, h := range answer.Hits {
		kind := h.Kind
		if q.Kind != "" {
			kind = "" // --kind is known
		}
		about := cmp.Or(termtext.FirstLine(h.Description), termtext.FirstLine(h.Title))
		server := h.Server
		if h.OriginalURI != "" {
			server = "" // the URI contains it
		}
		t.add(kind, h.ListedName(), server, about)
	}
	if err := a.printTable(&t); err != nil {
		return err
	}
	if more := answer.Total - len(answer.Hits); more > 0 && a.OutTTY {
		a.Warn("%s more; show them with --limit %d", strconv.Itoa(more), min(answer.Total, foundMost))
	}
	return nil
}
