package uicontext

import (
	"context"

	"goblin/registry/candidate"
)

// NewServers finds servers and adds them to the config.
type NewServers interface {
	// ClientServers returns the servers in the config files of clients. It fails if the
	// config cannot be changed.
	ClientServers() (*candidate.ClientServers, error)
	// SearchRegistry returns at most 100 servers that contain all words. It takes up to 30
	// seconds.
	SearchRegistry(ctx context.Context, words []string) (*candidate.SearchResult, error)
	// AddDefinition stores secrets, starts the server once unless untested, and adds it to
	// the config. lacks describes what is wrong with the server. Then, after an error and
	// after the end of ctx, nothing is changed. It may take a minute.
	AddDefinition(ctx context.Context, d *candidate.Definition, untested bool) (lacks string, err error)
}
