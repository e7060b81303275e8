package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"goblin/gateway/clientconfig"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/mcpregistry"
	"goblin/gateway/secrets"
	"goblin/registry/candidate"
	"goblin/registry/termtext"
)

const (
	maxFound = 100  // servers of one search
	maxAbout = 1000 // bytes of a description
)

func (i *Stack) getenv(name string) string {
	if i.o.Getenv == nil {
		return os.Getenv(name)
	}
	return i.o.Getenv(name)
}

func (i *Stack) secretStore() *secrets.Store { return secrets.Open(config.StateFolder(i.getenv)) }

// SearchRegistry returns the servers of the configured registry that contain all words.
// It blocks like [mcpregistry.Client.Search].
func (i *Stack) SearchRegistry(ctx context.Context, words []string) (*candidate.SearchResult, error) {
	f, err := i.writableFile()
	if err != nil {
		return nil, err
	}
	i.reloadMu.Lock()
	address := cmp.Or(i.getenv("GOBLIN_REGISTRY"), i.servedConfig.Registry, mcpregistry.OfficialURL)
	i.reloadMu.Unlock()
	client := &mcpregistry.Client{BaseURL: address, Version: i.o.Version, Cache: mcpregistry.OpenCache(i.getenv)}
	found, err := client.Search(ctx, words, maxFound)
	if err != nil {
		return nil, err
	}
	result := &candidate.SearchResult{Registry: address, HasMore: found.HasMore, Invalid: found.Invalid, Cached: found.Cached}
	missing := missingPrograms()
	for n := range found.Servers {
		e := &found.Servers[n]
		s := candidate.Server{
			Name: config.MakeName(e.ShortName(), isTaken(f)), Origin: e.Name, Version: e.Version,
			Title: termtext.Truncate(e.Title, maxAbout), Description: termtext.Truncate(e.Description, maxAbout),
			Link: cmp.Or(e.Repository.URL, e.Website), Deprecated: e.Status == "deprecated",
		}
		for _, c := range e.Choices() {
			s.Choices = append(s.Choices, newChoice(e, c, missing))
		}
		result.Servers = append(result.Servers, s)
	}
	return result, nil
}

func newChoice(e *mcpregistry.Entry, c mcpregistry.Choice, missing func(program string) string) candidate.Choice {
	choice := candidate.Choice{Kind: c.Kind, Summary: termtext.Truncate(c.Summary, maxAbout), Problem: c.Problem, Missing: missing(c.Command())}
	if c.Problem == "" && c.NeedsDownload() {
		choice.Problem = "is a bundle; add it with: " + termtext.Command("goblin add --registry", []string{e.Name})
	}
	if choice.Problem != "" {
		return choice
	}
	for _, v := range c.Variables() {
		v.Description = termtext.Truncate(v.Description, maxAbout)
		choice.Variables = append(choice.Variables, v)
	}
	choice.Build = c.Build
	return choice
}

// missingPrograms returns a function that returns a program if it is not installed.
func missingPrograms() func(program string) string {
	known := map[string]string{"": ""}
	return func(program string) string {
		missing, ok := known[program]
		if !ok {
			if _, err := exec.LookPath(program); err != nil {
				missing = program
			}
			known[program] = missing
		}
		return missing
	}
}

func isTaken(f *configedit.File) func(name string) bool {
	return func(name string) bool { return f.Keys(name) != nil }
}

// ClientServers returns the servers that "goblin init" finds. Callers must store their
// secrets outside the config.
func (i *Stack) ClientServers() (*candidate.ClientServers, error) {
	f, err := i.writableFile()
	if err != nil {
		return nil, err
	}
	var read []clientconfig.FileServers
	all := &candidate.ClientServers{}
	for _, c := range clientconfig.All {
		read = append(read, c.Read(clientconfig.CurrentMachine(i.getenv, ""))...)
	}
	for n := range read {
		if read[n].Err != nil {
			all.Problems = append(all.Problems, read[n].Title()+": "+read[n].Err.Error())
		}
	}
	store := i.secretStore()
	servers, present := clientconfig.Merge(read, func(name string) map[string]any {
		if keys := f.Keys(name); keys != nil {
			return clientconfig.WithSecrets(keys, store.Get)
		}
		return nil
	})
	for n := range servers {
		all.Servers = append(all.Servers, newClientServer(&servers[n], store.Begin()))
	}
	for n := range present {
		s := &present[n]
		all.Servers = append(all.Servers, candidate.Server{Name: s.Name, Origin: s.Titles(), Description: s.Summary(), Present: true})
	}
	return all, nil
}

func newClientServer(s *clientconfig.Server, names *secrets.Transaction) candidate.Server {
	keys, found := s.SplitSecrets(names.FreeName)
	delete(keys, "disabled")
	d := &candidate.Definition{Name: s.Name, Comment: s.Comment(), Keys: keys}
	for _, secret := range found {
		d.Secrets = append(d.Secrets, candidate.Secret(secret))
	}
	c := candidate.Server{Name: s.Name, Origin: s.Titles(), Description: s.Summary(), Entry: d, Notes: slices.Clone(s.Notes)}
	for name, purpose := range s.Needs {
		c.Notes = append(c.Notes, "needs variable "+name+": "+purpose)
	}
	slices.Sort(c.Notes)
	if len(found) > 0 {
		c.Notes = append(c.Notes, termtext.Count(len(found), "secret")+" in plain text, stored outside the config when you add it")
	}
	c.Notes = append(c.Notes, "from "+strings.Join(s.Files, ", "))
	return c
}

// AddDefinition stores the definition's secrets and values that look secret, starts the
// server once unless untested, and adds it. lacks is the problem of the test, or "". If the server is not added, the
// secrets are restored. It blocks like [Stack.Diagnose].
func (i *Stack) AddDefinition(ctx context.Context, d *candidate.Definition, untested bool) (lacks string, err error) {
	stored := i.secretStore().Begin()
	typed := clientconfig.Server{Name: d.Name, Keys: d.Keys}
	keys, found := typed.SplitSecrets(stored.FreeName)
	added := configedit.Server{Name: d.Name, Comment: d.Comment, Keys: keys}
	change := addServerEdit(added)
	if _, err := i.editedFile(change); err != nil {
		return "", err
	}
	defer func() {
		if lacks != "" || err != nil {
			err = errors.Join(err, stored.Rollback())
		}
	}()
	all := slices.Clone(d.Secrets)
	for _, s := range found {
		all = append(all, candidate.Secret(s))
	}
	for _, s := range all {
		if _, err := stored.Set(s.Name, s.Value); err != nil {
			return "", fmt.Errorf("store secret %q: %w", s.Name, err)
		}
	}
	if !untested {
		lacks, err = i.tryServer(ctx, added)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && lacks == "" {
		err = i.edit(change)
	}
	return lacks, err
}

// writableFile returns the config file for reading, or why it cannot be changed.
func (i *Stack) writableFile() (*configedit.File, error) {
	f, err := i.editedFile(func(*configedit.File) error { return nil })
	if err != nil {
		return nil, err
	}
	return f, f.CheckWritable()
}
