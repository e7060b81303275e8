package stderr_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/upstream/stderr"
)

// The texts are outputs of common programs that fail.
func TestTheErrorIsFoundInWhatProgramsWrite(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text      string
		gist      string
		fix       string
		missing   string
		mentioned string
	}{
		"node, a module": {
			text: "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/srv/x.js'\n    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)\n    at main {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v22.1.0",
			gist: "Error: Cannot find module '/srv/x.js'", fix: "correct the path in args",
		},
		"node, a line of source": {
			text: "/srv/k.js:2\nif (!k) throw new Error(\"MY_TOKEN is required\");\n        ^\n\nError: MY_TOKEN is required\n    at x (/srv/k.js:2:15)",
			gist: "Error: MY_TOKEN is required", missing: "MY_TOKEN",
		},
		"npm, no package": {
			text: "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/@x%2fy - Not found\nnpm error 404\nnpm error 404  '@x/y@*' is not in this registry.\nnpm error 404\nnpm error 404 Note that you can also install from a\nnpm error A complete log of this run can be found in: /home/me/.npm/_logs/x.log",
			gist: "npm error 404 Not Found - GET https://registry.npmjs.org/@x%2fy - Not found", fix: "correct the name or the version of the package in args",
			mentioned: "",
		},
		"npm, no version": {
			text: "npm ERR! code ETARGET\nnpm ERR! notarget No matching version found for x@9.9.9.\nnpm ERR! notarget In most cases you or one of your dependencies are requesting\nnpm ERR! A complete log of this run can be found in: x",
			gist: "npm ERR! notarget No matching version found for x@9.9.9.", fix: "correct the version of the package in args",
		},
		"npm, the network": {
			text: "npm error code ENOTFOUND\nnpm error syscall getaddrinfo\nnpm error network request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org\nnpm error A complete log of this run can be found in: x",
			gist: "npm error network request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org", fix: "check that this machine is online",
		},
		"npx, no program": {
			text: "npm error could not determine executable to run\nnpm error A complete log of this run can be found in: x",
			gist: "npm error could not determine executable to run", fix: "name the program of the package",
		},
		"node, too old": {
			text: "npm warn EBADENGINE Unsupported engine {\nThis server requires Node.js 22 or later, but v18.1.0 runs\n    at x (y.js:1:1)",
			gist: "This server requires Node.js 22 or later, but v18.1.0 runs", fix: "install the version of Node.js that it requires",
		},
		"node, a port": {
			text: "node:events:497\n      throw er; // Unhandled 'error' event\n      ^\n\nError: listen EADDRINUSE: address already in use :::3000\n    at Server.setupListenHandle (node:net:1817:16)\nEmitted 'error' event on Server instance at:\n    at emitErrorNT (node:net:1796:8) {\n  code: 'EADDRINUSE',\n  errno: -98,\n  port: 3000\n}",
			gist: "Error: listen EADDRINUSE: address already in use :::3000", fix: "stop the program that uses the port",
		},
		"python, a variable": {
			text: "Traceback (most recent call last):\n  File \"/srv/x.py\", line 3, in <module>\n    key = os.environ['MY_API_KEY']\n          ~~~~~~~~~~^^^^^^^^^^^^^^\nKeyError: 'MY_API_KEY'",
			gist: "KeyError: 'MY_API_KEY'", missing: "MY_API_KEY",
		},
		"python, two errors": {
			text: "Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"x.py\", line 2\nConfigError: settings.toml is missing",
			gist: "ConfigError: settings.toml is missing",
		},
		"python, a module": {text: "/usr/bin/python3: No module named my_server", gist: "/usr/bin/python3: No module named my_server", fix: "install what is missing"},
		"pydantic": {
			text: "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\nmy_api_key\n  Field required [type=missing, input_value={}, input_type=dict]\n    For further information visit https://errors.pydantic.dev/2.11/v/missing",
			gist: "Field required [type=missing, input_value={}, input_type=dict]", mentioned: "MY_API_KEY",
		},
		"zod": {
			text: "ZodError: [\n  {\n    \"code\": \"invalid_type\",\n    \"expected\": \"string\",\n    \"received\": \"undefined\",\n    \"path\": [\n      \"MY_API_KEY\"\n    ],\n    \"message\": \"Required\"\n  }\n]\n    at x (y.js:1:1)",
			gist: "ZodError: [", missing: "MY_API_KEY",
		},
		"go, a panic": {
			text: "2026/01/02 15:04:05 starting\npanic: runtime error: index out of range [1] with length 1\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/main.go:9 +0x1d\nexit status 2",
			gist: "panic: runtime error: index out of range [1] with length 1",
		},
		"java": {
			text: "Exception in thread \"main\" java.lang.IllegalStateException: no context\n\tat a.B.c(B.java:1)\nCaused by: java.io.FileNotFoundException: /srv/db (No such file or directory)\n\tat d.E.f(E.java:2)\n\t... 14 more",
			gist: "Caused by: java.io.FileNotFoundException: /srv/db (No such file or directory)", fix: "correct the path that it names",
		},
		"docker, no daemon": {
			text: "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?.\nSee 'docker run --help'.",
			gist: "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?.", fix: "start Docker",
		},
		"docker, no image": {
			text: "Unable to find image 'x/y:latest' locally\ndocker: Error response from daemon: pull access denied for x/y, repository does not exist or may require 'docker login'.\nSee 'docker run --help'.",
			gist: "docker: Error response from daemon: pull access denied for x/y, repository does not exist or may require 'docker login'.", fix: "correct the name of the image",
		},
		"uvx": {
			text: "  × No solution found when resolving tool dependencies:\n  ╰─▶ Because x-mcp was not found in the package registry and you require x-mcp, we can conclude that your requirements are unsatisfiable.",
			gist: "× No solution found when resolving tool dependencies:", fix: "correct the name or the version of the package in args",
		},
		"argparse":                         {text: "usage: x [-h] --root ROOT\nx: error: the following arguments are required: --root", gist: "x: error: the following arguments are required: --root", fix: "add what it requires to args"},
		"a help":                           {text: "usage: x [-h] --root ROOT", gist: "usage: x [-h] --root ROOT"},
		"a sentence, a variable":           {text: "starting x 1.0\n\x1b[31mMissing environment variable:\x1b[0m TOKEN", gist: "Missing environment variable: TOKEN", missing: "TOKEN"},
		"two variables":                    {text: "Error: A_KEY and B_KEY must be set", gist: "Error: A_KEY and B_KEY must be set", missing: "A_KEY B_KEY"},
		"sh":                               {text: "sh: 1: MY_TOKEN: parameter not set", gist: "sh: 1: MY_TOKEN: parameter not set", missing: "MY_TOKEN"},
		"process.env":                      {text: "Error: process.env.apiKey is undefined", gist: "Error: process.env.apiKey is undefined", missing: "apiKey"},
		"please":                           {text: "Please set your API key, for example: export MY_API_KEY=...", gist: "Please set your API key, for example: export MY_API_KEY=...", missing: "MY_API_KEY"},
		"a warning before the error":       {text: "WARN: EXTRA_TOKEN is not set, some tools are missing\nError: the database is locked", gist: "Error: the database is locked"},
		"a warning alone":                  {text: "[WARN] EXTRA_TOKEN is not set", gist: "[WARN] EXTRA_TOKEN is not set", missing: "EXTRA_TOKEN"},
		"a value":                          {text: "FATAL: API_URL is set to http://x, which does not answer", gist: "FATAL: API_URL is set to http://x, which does not answer", mentioned: "API_URL"},
		"a table":                          {text: "Error: relation USER_DATA not found", gist: "Error: relation USER_DATA not found"},
		"should be":                        {text: "The API_URL variable should be set.", gist: "The API_URL variable should be set.", missing: "API_URL"},
		"a database":                       {text: "Error: connect ECONNREFUSED 127.0.0.1:5432\n    at x", gist: "Error: connect ECONNREFUSED 127.0.0.1:5432", fix: "start the service that it connects to"},
		"constants":                        {text: "TypeError: Cannot read properties of undefined (reading 'MAX_SIZE')\nError [ERR_INVALID_ARG]: x", gist: "Error [ERR_INVALID_ARG]: x", mentioned: "MAX_SIZE"},
		"nothing that looks like an error": {text: "a\nb\nc\nd", gist: "b | c | d"},
		"a log":                            {text: "INFO: no config file found, defaults are used\nFATAL the database is locked", gist: "FATAL the database is locked"},
		"silence":                          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tail stderr.Tail
			for line := range strings.Lines(tt.text) {
				tail.Add(strings.TrimSuffix(line, "\n"))
			}
			lines := tail.Lines()
			require.Equal(t, tt.gist, stderr.ErrorLine(lines))
			fix, _ := stderr.FindFix(lines)
			if tt.fix == "" {
				require.Empty(t, fix)
			}
			require.Contains(t, fix, tt.fix)
			missing, mentioned := stderr.Variables(lines)
			require.Equal(t, tt.missing, strings.Join(missing, " "))
			if tt.mentioned != "" {
				require.Contains(t, mentioned, tt.mentioned)
			}
			picked := stderr.Pick(lines)
			require.LessOrEqual(t, len(picked), stderr.MaxLines)
			for _, part := range strings.Split(tt.gist, " | ") {
				require.Contains(t, strings.Join(picked[:min(len(picked), 4)], "\n"), part)
			}
		})
	}
}

func TestAnErrorBeforeALongTraceIsKept(t *testing.T) {
	t.Parallel()
	var tail stderr.Tail
	for range 100 {
		tail.Add("request served")
	}
	tail.Add("panic: boom")
	for range 500 {
		tail.Add("\t/srv/main.go:9 +0x1d")
	}
	lines := tail.Lines()
	require.Less(t, len(lines), 100)
	require.Equal(t, "panic: boom", stderr.ErrorLine(lines))
	picked := stderr.Pick(lines)
	require.Len(t, picked, stderr.MaxLines)
	require.Equal(t, "panic: boom", picked[0])
}

func FuzzWhateverAProcessWrites(f *testing.F) {
	f.Add("Error: MY_API_KEY is required\n    at x\n\x1b[31mx")
	f.Fuzz(func(t *testing.T, text string) {
		var tail stderr.Tail
		for line := range strings.Lines(text) {
			tail.Add(line)
		}
		lines := tail.Lines()
		require.LessOrEqual(t, len(stderr.Pick(lines)), stderr.MaxLines)
		_ = stderr.ErrorLine(lines)
		_, _ = stderr.FindFix(lines)
		missing, mentioned := stderr.Variables(lines)
		require.LessOrEqual(t, len(missing)+len(mentioned), 16)
	})
}
