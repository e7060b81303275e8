package config

import (
	"slices"
	"strings"
	"time"
)

const downloadTimeout = 2 * time.Minute

// downloaders maps programs that may download what they run to the subcommands that do
// so. nil means every use.
var downloaders = map[string][]string{
	"npx": nil, "pnpx": nil, "bunx": nil, "uvx": nil, "pipx": nil, "dnx": nil, "jbang": nil,
	"docker": nil, "podman": nil, "nerdctl": nil,
	"npm":    {"exec", "x"},
	"pnpm":   {"dlx"},
	"yarn":   {"dlx"},
	"bun":    {"x"},
	"uv":     {"run", "tool"},
	"deno":   {"run", "serve"},
	"go":     {"run"},
	"dotnet": {"tool", "dnx"},
	"nix":    {"run", "shell", "develop"},
}

// wrappers run the command in their arguments.
var wrappers = []string{"cmd", "env", "sudo", "wsl", "corepack", "nice", "nohup", "time", "stdbuf"}

// shells run the line after their option -c.
var shells = []string{"sh", "bash", "zsh", "dash", "ksh", "fish", "powershell", "pwsh"}

const maxWrapped = 4

func downloads(command string, args []string) bool {
	words := append([]string{command}, args...)
	for range maxWrapped {
		program := programName(words[0])
		switch {
		case slices.Contains(wrappers, program):
			words = unwrapped(words[1:])
		case slices.Contains(shells, program):
			words = unwrapped(strings.Fields(shellLine(words[1:])))
		default:
			subcommands, known := downloaders[program]
			return known && (subcommands == nil || slices.ContainsFunc(subcommands, func(s string) bool { return slices.Contains(words[1:], s) }))
		}
		if len(words) == 0 {
			return false
		}
	}
	return false
}

// programName returns the lower-case name of a program without its directory and Windows
// extension.
func programName(command string) string {
	name := strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
	for _, ending := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// unwrapped returns the command after a wrapper's options and variables.
func unwrapped(words []string) []string {
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, "-"), word == "exec", strings.Contains(word, "="):
		case len(word) == 2 && word[0] == '/': // an option of cmd, such as /c
		case strings.Contains(word, " "): // a whole line in one argument
			return append(strings.Fields(word), words[i+1:]...)
		default:
			return words[i:]
		}
	}
	return nil
}

// shellLine returns the line that a shell runs, or "" if it runs a file.
func shellLine(args []string) string {
	for i, arg := range args {
		option := strings.ToLower(strings.TrimLeft(arg, "-"))
		if option != strings.ToLower(arg) && (option == "command" || !strings.HasPrefix(arg, "--") && strings.Contains(option, "c")) {
			return strings.Join(args[i+1:], " ")
		}
	}
	return ""
}
