// Package command implements the shell commands except the serving modes.
//
// Commands block until they finish or their context ends. They leave no goroutines or
// child processes behind. stdout contains only the result. Server text that is printed to
// a terminal is escaped by [goblin/registry/termtext].
//
// A command queries the running daemon, or a gateway in this process, as an MCP client.
// This package must not know how requests are routed or how servers are run.
//
// Each command is in the file with its name: list.go, call.go, secret.go. Exceptions:
//
//	install.go      also uninstall
//	login.go        also logout
//	change.go       remove, enable, disable
//	toggle.go       tools, prompts, resources, templates
//	addregistry.go  add --registry
//	registry.go     registry search
//	bundle.go       export --format bundle
//
// The other files:
//
//	app.go          App and the list of all commands
//	flags.go        flags, arguments and completions of several commands
//	gateway.go      opens the daemon or a local gateway; profile.go reduces it to a profile
//	daemon.go       finds the running daemon
//	configfile.go   finds, opens and saves the config
//	output.go       prints text or JSON; table.go prints tables; result.go prints MCP results
//	request.go      sends one MCP request; notfound.go explains its errors
//	lookup.go       finds entries by names and globs; names.go guesses the server of a name
//	waiting.go      reports slow servers; serverstate.go describes their states
//	cachelists.go   fills the list cache; validatelists.go checks the config against lists
//
// To add a command, for example "goblin ping":
//
//   - ping.go: a method ping of App that returns a cobra command, made by withJSON. Set
//     Use, Short, Long, Example, Args and completion. Its RunE opens a gateway by
//     withGateway, or the daemon by runningDaemon, and prints by printResult or print.
//   - app.go: the method in Commands.
//   - ping_test.go: its output and exit codes with a scripted gateway (fake_test.go).
//   - gateway/e2e/commands: a test with the real program.
//   - gateway/daemon/operations.go, gateway/stack/control.go and fake_test.go, if only
//     the daemon can answer it. Goblin itself answers MCP's ping, without asking a
//     server.
//   - README.md and CHANGELOG.md, if users should know.
package command
