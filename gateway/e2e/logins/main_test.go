//go:build e2e

// Package logins tests logins of users and machines at remote servers, with a scripted
// authorization server.
package logins

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
