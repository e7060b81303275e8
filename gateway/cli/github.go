package cli

import "strings"

// commandStart is the start of a command that GitHub's runner finds anywhere in a line of the
// log. It finds "::" only at the start of a line, where no output has untrusted text.
const commandStart = "##["

// IsGitHub reports whether the output is the log of a GitHub job.
func (a *App) IsGitHub() bool { return a.Getenv != nil && a.Getenv("GITHUB_ACTIONS") == "true" }

// ForLog changes text so that GitHub's runner finds no command in it.
func (a *App) ForLog(text string) string {
	if !a.IsGitHub() {
		return text
	}
	return strings.ReplaceAll(text, commandStart, "## [")
}

// JSONForLog changes JSON so that GitHub's runner finds no command in it. The values stay
// the same.
func (a *App) JSONForLog(text string) string {
	if !a.IsGitHub() {
		return text
	}
	return strings.ReplaceAll(text, commandStart, `#\u0023[`)
}
