package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func TestTheProjectTakesThePlaceOfItsVariable(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "/etc/goblin.yaml", `
servers:
  local:
    args: ["--in=${project}", "${project:-x}/src", "$5"]
    command: ${project}/bin/run
    env: {WHERE: "${project}", HOME_OF: "${HOME}"}
    isolation: project
  remote: {url: "https://h/mcp?in=${project}", headers: {X-Project: "${project}"}, isolation: project, roots: config}
  below: {command: c, cwd: "${project}/sub", isolation: project}
  shared: {command: c, args: ["${project}"]}
`)
	const folder = "/home/me/a b&c"
	s := cfg.Servers[0].InProject(folder)
	require.Equal(t, []string{"--in=" + folder, folder + "/src", "$5"}, s.Args)
	require.Equal(t, folder+"/bin/run", s.Command)
	require.Equal(t, folder, s.Env["WHERE"])
	require.Equal(t, folder, s.Cwd, "unless another one is given")
	require.NotEqual(t, folder, cfg.Servers[0].Env["WHERE"], "of a copy")
	require.Equal(t, "--in=${project}", cfg.Servers[0].Args[0])
	require.Empty(t, cfg.Servers[1].Cwd, "without a process")
	require.Equal(t, config.ClientRoots, s.RootsSource())
	remote := cfg.Servers[1].InProject(folder)
	require.Equal(t, "https://h/mcp?in=%2Fhome%2Fme%2Fa%20b%26c", remote.URL)
	require.Equal(t, folder, remote.Headers["X-Project"])
	require.Equal(t, config.ConfigRoots, remote.RootsSource())
	require.Equal(t, folder+"/sub", cfg.Servers[2].InProject(folder).Cwd)
	require.Contains(t, cfg.Servers[3].Problem, "isolation: project")
	require.Empty(t, cfg.Servers[0].Problem+cfg.Servers[1].Problem+cfg.Servers[2].Problem)
}

func TestPackagesThatWorkInOneProjectAreNamed(t *testing.T) {
	t.Parallel()
	for server, warned := range map[string]bool{
		`{command: uvx, args: [mcp-server-git]}`:                                                true,
		`{command: uvx, args: [mcp-server-git, --repository, /srv/repo]}`:                       false,
		`{command: uvx, args: [mcp-server-git==2025.1.14]}`:                                     true,
		`{command: npx, args: [-y, "@modelcontextprotocol/server-filesystem"]}`:                 true,
		`{command: npx, args: [-y, "@modelcontextprotocol/server-filesystem@2025.8.21", /srv]}`: false,
		`{command: uvx, args: [--from, "git+https://github.com/oraios/serena", serena]}`:        true,
		`{command: /opt/bin/mcp-language-server}`:                                               true,
		`{command: npx, args: [nx-mcp@latest], isolation: project}`:                             false,
		`{command: npx, args: [nx-mcp@latest], isolation: session}`:                             false,
		`{command: npx, args: [nx-mcp@latest], disabled: true}`:                                 false,
		`{command: uvx, args: [mcp-server-git, --log=/var/log/git]}`:                            true,
		`{command: npx, args: [nx-mcp-other]}`:                                                  false,
	} {
		cfg := parse(t, "goblin.yaml", "servers: {s: "+server+"}")
		found := false
		for _, w := range cfg.Warnings {
			found = found || strings.Contains(w.String(), "isolation: project")
		}
		require.Equal(t, warned, found, server)
	}
}

func TestCommandsThatRunCodeOfAProjectAreNamed(t *testing.T) {
	t.Parallel()
	for server, warned := range map[string]bool{
		`{command: npx, args: [-y, x], isolation: project}`:                          true,
		`{command: /usr/bin/npx, args: [-y, x], isolation: project}`:                 true,
		`{command: npx.cmd, args: [-y, x], isolation: project}`:                      true,
		`{command: npx, args: [-y, x], cwd: "${project}/sub", isolation: project}`:   true,
		`{command: npm, args: [exec, x], isolation: project}`:                        true,
		`{command: bunx, args: [x], isolation: project}`:                             true,
		`{command: bun, args: [x, y], isolation: project}`:                           true,
		`{command: python3.12, args: [-m, x], isolation: project}`:                   true,
		`{command: npx, args: [--prefix, /srv/empty, -y, x], isolation: project}`:    false,
		`{command: npx, args: [--prefix=/srv/empty, -y, x], isolation: project}`:     false,
		`{command: npx, args: [-y, x, "${project}"], cwd: /srv, isolation: project}`: false,
		`{command: python3, args: [-P, -m, x], isolation: project}`:                  false,
		`{command: python3, args: [/srv/x.py], isolation: project}`:                  false,
		`{command: uvx, args: [mcp-server-git, "${project}"], isolation: project}`:   false,
		`{command: npx, args: [-y, x]}`:                                              false,
		`{command: npx, args: [-y, x], isolation: session}`:                          false,
		`{command: npx, args: [-y, x], isolation: project, disabled: true}`:          false,
	} {
		cfg := parse(t, "goblin.yaml", "servers: {s: "+server+"}")
		found := slices.ContainsFunc(cfg.Warnings, func(p config.Problem) bool {
			return strings.Contains(p.Text, "runs code from the project's folder")
		})
		require.Equal(t, warned, found, server)
	}
}
