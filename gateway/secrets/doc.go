// Package secrets keeps what must not stand in a config, and gives it to the parts that
// need it: by name, in the system's keyring or else in a private file, and by the
// references of the config: ${keyring:NAME}, ${file:PATH} and ${cmd:PROGRAM ARGS…}.
//
// It knows neither configs nor servers, caches nothing and prints nothing. No error of it
// holds a value.
package secrets
