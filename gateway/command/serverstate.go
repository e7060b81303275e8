package command

import (
	"fmt"

	"goblin/gateway/daemon"
	"goblin/registry"
)

// isMissing reports whether entries are unknown. Cached lists of a starting server are
// known.
func isMissing(s daemon.Server) bool {
	starts := s.State == string(registry.StateConnecting) && s.Error == ""
	return isUnready(s.State) && (!starts || s.Remembered.IsZero())
}

// lacksEntries reports whether entries are unknown, or a list failed.
func lacksEntries(s daemon.Server) bool {
	return isMissing(s) || s.State == string(registry.StateReady) && s.Error != ""
}

// waitsForProject reports whether a server starts with the first client that has a
// project.
func waitsForProject(s daemon.Server) bool {
	return s.State == string(registry.StateStopped) && s.Error != ""
}

func isUnready(state string) bool {
	switch registry.State(state) {
	case registry.StateReady, registry.StateSleeping, registry.StateDisabled, registry.StateStopped, "":
		return false
	}
	return true
}

func stateText(s daemon.Server) string {
	verb := ""
	switch registry.State(s.State) {
	case registry.StateFailed, registry.StateNeedsLogin:
	default:
		verb = "is "
	}
	return fmt.Sprintf("server %q %s%s%s", s.Name, verb, registry.State(s.State).Label(), because(s.Error))
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
