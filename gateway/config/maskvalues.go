package config

import (
	"slices"
	"strings"

	"goblin/registry/secrettext"
)

func configSecrets(cfg *Config) (all []string) {
	if cfg.Gateway.lateToken == nil {
		all = append(all, cfg.Gateway.AuthToken)
	}
	all = append(all, cfg.Search.AuthToken)
	all = append(all, secrettext.OfURL(cfg.Search.Embeddings)...)
	all = append(all, otelSecrets(&cfg.OTel)...)
	all = append(all, variableSecrets(cfg.variables)...)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		for _, v := range serverSecrets(s) {
			if !s.IsReference(v) && !bareVariable().MatchString(v) { // variable names are not secret
				all = append(all, v)
			}
		}
		all = append(all, variableSecrets(s.Variables)...)
	}
	return all
}

func variableSecrets(variables map[string]string) (all []string) {
	for name, v := range variables {
		if secrettext.Looks(name, v) || !secrettext.IsOrdinary(v) {
			all = append(all, v)
		}
	}
	return all
}

// envSecrets also returns the parts of a URL, which servers may print separately. A
// password equal to the user name is not masked, since that would hide the name
// everywhere.
func envSecrets(v string) []string {
	whole, user, password := secrettext.User(v)
	if password == "" || password == user {
		return []string{v}
	}
	return []string{v, whole, password}
}

// headerSecrets returns the value of a header, with and without its scheme.
func headerSecrets(v string) []string {
	if scheme, token, ok := strings.Cut(v, " "); ok && !strings.Contains(scheme, "=") {
		return []string{v, strings.TrimSpace(token)}
	}
	return []string{v}
}

func serverSecrets(s *Server) (all []string) {
	for name, v := range s.Env {
		if slices.Contains(s.FromEnv, name) || secrettext.Looks(name, v) {
			all = append(all, envSecrets(v)...)
		}
	}
	for _, v := range s.Headers {
		all = append(all, headerSecrets(v)...)
	}
	all = append(all, s.OAuth.ClientSecret)
	all = append(all, secrettext.OfURL(s.URL)...)
	all = append(all, secrettext.OfPath(s.URL)...)
	return append(all, secrettext.OfArgs(s.Args)...)
}
