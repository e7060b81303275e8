package pane

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"goblin/registry"
	"goblin/registry/diagnosis"
	"goblin/tui/content"
	"goblin/tui/dialog"
	"goblin/tui/look"
)

func (p *Servers) Subject() subject {
	a := p.app
	s, ok := p.Table.Selected()
	if !ok {
		if p.Table.Total() > 0 {
			return subject{}
		}
		return subject{key: "getting started", title: "Getting started", Blocks: func(context.Context) []content.Block { return a.Intro() }}
	}
	tail := p.tails[s.Name]
	wrote := uint64(0)
	if len(tail) > 0 {
		wrote = tail[len(tail)-1].Seq
	}
	lk, pinned, found := a.Look, a.Reg.Pinned(s.Name), p.found[s.Name].blocks(a.Look, s)
	return subject{
		key: "server " + s.Name, title: s.Name,
		version: strconv.FormatInt(a.Now().Unix()/5, 10) + pinnedVersion(pinned) + p.found[s.Name].version() + fmt.Sprintf("%s %d %s %s %s %d %v %v %d %d %d %s %d %d %d %p %v %s %v %v %s", s.State, s.Since.UnixNano(), s.ServerName, s.ServerVersion,
			s.ProtocolVersion, s.Counts, s.Listed, s.Stale, s.Restarts, s.PID, s.Latency, s.LastError, len(s.Capabilities), len(s.Instructions), wrote, lk, s.Projects, s.Login, s.CanLogIn, s.Remembered, s.Held),
		Blocks: func(context.Context) []content.Block {
			blocks := []content.Block{{Kind: content.Facts, Facts: append(serverFacts(lk, s), definitionFacts(a.Backend.Definition(s.Name))...)}}
			blocks = append(blocks, found...)
			blocks = append(blocks, remedy(s, p.app.KeyOf)...)
			blocks = append(blocks, pinnedBlocks(pinned)...)
			if a.Demo {
				blocks = append(blocks, a.Intro()...)
			}
			if s.Instructions != "" {
				blocks = append(blocks, content.Block{Title: "Instructions", Kind: content.Markdown, Text: s.Instructions})
			}
			if len(s.Capabilities) > 0 {
				blocks = append(blocks, content.Block{Title: "Capabilities", Kind: content.JSON, Data: s.Capabilities})
			}
			return append(blocks, tailBlock(tail)...)
		},
	}
}

// serverFacts are all that is known of a server.
func serverFacts(lk *look.Look, s registry.ServerState) []content.Fact {
	_, style := stateMark(lk, s.State)
	state := string(s.State)
	if !s.Since.IsZero() {
		state += " since " + s.Since.Format("15:04:05")
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	f := []content.Fact{
		{Label: "server", Value: s.Name},
		{Label: "state", Value: state, Style: style},
		{Label: "last error", Value: s.LastError, Style: lk.Bad},
		{Label: "calls itself", Value: strings.TrimSpace(s.ServerName + " " + s.ServerVersion)},
		{Label: "title", Value: s.ServerTitle},
		{Label: "login", Value: s.Login.String()},
		{Label: "transport", Value: s.Transport},
		{Label: "revision", Value: s.ProtocolVersion},
		{Label: "era", Value: s.Era},
	}
	if len(s.Projects) == 0 {
		f = append(f, content.Fact{Label: "pid", Value: number(s.PID)})
	}
	for _, p := range s.Projects {
		pid := ""
		if p.PID > 0 {
			pid = fmt.Sprintf(" (pid %d)", p.PID)
		}
		f = append(f, content.Fact{Label: "project", Value: p.Folder + pid})
	}
	if s.Latency > 0 {
		f = append(f, content.Fact{Label: "latency", Value: dialog.Millis(s.Latency)})
	}
	f = append(f, content.Fact{Label: "restarts", Value: number(s.Restarts)})
	if (s.State == registry.StateFailed || s.State == registry.StateRetrying) && !s.Retry.IsZero() {
		f = append(f, content.Fact{Label: "attempts", Value: fmt.Sprintf("%d; the next at %s", s.Attempts, s.Retry.Format("15:04:05"))})
	}
	for _, kind := range []registry.Kind{registry.Tool, registry.Prompt, registry.Resource, registry.Template, registry.Skill} {
		if n := s.Counts[kind]; n > 0 {
			f = append(f, content.Fact{Label: kind.String() + "s", Value: strconv.Itoa(n)})
		}
	}
	if s.Held != "" {
		f = append(f, content.Fact{Label: "kept up", Value: "by " + s.Held + "; without, it would sleep"})
	}
	switch {
	case !s.Remembered.IsZero():
		f = append(f, content.Fact{Label: "lists", Value: "~ remembered from " + s.Remembered.Format("2006-01-02 15:04") + "; it has not listed since this host started"})
	case s.Stale:
		f = append(f, content.Fact{Label: "lists", Value: "stale: from before the connection was lost"})
	case s.State == registry.StateReady && !s.Listed:
		f = append(f, content.Fact{Label: "lists", Value: "on their way"})
	}
	return f
}

// definitionFacts are how a server is started or reached, and what its process takes.
func definitionFacts(d diagnosis.Definition) []content.Fact {
	f := []content.Fact{
		{Label: "command", Value: d.Command},
		{Label: "folder", Value: d.Folder},
		{Label: "URL", Value: d.URL},
		{Label: "variables", Value: strings.Join(d.Env, ", ")},
		{Label: "headers", Value: strings.Join(d.Headers, ", ")},
	}
	if d.Processes > 0 {
		f = append(f, content.Fact{Label: "takes", Value: fmt.Sprintf("%s of processor time, %s of memory; processes: %d",
			dialog.Millis(d.Processor), dialog.Size(d.Memory), d.Processes)})
	}
	return f
}

// remedy says what helps a server that is not up.
func remedy(s registry.ServerState, key func(string) string) []content.Block {
	note := func(text string) []content.Block { return []content.Block{{Kind: content.Note, Text: text}} }
	switch s.State {
	case registry.StateSleeping:
		return note("Nobody uses it: its next use starts it, and so does Enter.")
	case registry.StateFailed, registry.StateRetrying:
		return note(key("reload") + " restarts it, " + key("pager") + " shows what it printed; " + key("open") + " finds out what is broken.")
	case registry.StateDisabled:
		return note("It is disabled: it is not started, and what it offers is not listed. " + key("enable") + " enables it as long as this host runs; in the config, remove \"disabled: true\".")
	case registry.StateNeedsLogin:
		var blocks []content.Block
		if s.CanLogIn {
			blocks = append(note("It wants a login: "+key("log-in")+" opens your browser. Or run this in a terminal; the server connects by itself then:"),
				content.Block{Kind: content.Text, Text: "goblin login " + s.Name})
		}
		return append(blocks,
			content.Block{Kind: content.Note, Text: "Or give it the header that it asks for, mostly this one, in the config; the variable must be set where Goblin starts:"},
			content.Block{Kind: content.Text, Text: "servers:\n  " + yamlKey(s.Name) + ":\n    headers:\n      Authorization: Bearer ${" + variable(s.Name) + "}"})
	}
	return nil
}

// yamlKey is a name as a key of YAML.
func yamlKey(name string) string {
	for _, r := range name {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return strconv.Quote(name)
		}
	}
	return name
}

// variable is a name for the token of a server in the environment.
func variable(server string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, server)
	return cmp.Or(name, "MY") + "_TOKEN"
}

// tailBlock shows the last lines that a server wrote.
func tailBlock(tail []registry.LogRecord) []content.Block {
	if len(tail) == 0 {
		return nil
	}
	var b strings.Builder
	for i, r := range tail {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(r.Time.Format("15:04:05") + " ")
		if r.Source == registry.SourceMessage {
			b.WriteString(strings.ToLower(r.Level.String()) + " ")
		}
		b.WriteString(dialog.CutText(strings.TrimRight(dialog.Clean(r.Text), " "), 2000))
	}
	return []content.Block{{Title: "Last lines of its stderr and messages", Kind: content.Text, Text: b.String()}}
}
