// Package secrets stores secrets in the system keyring or a private file and resolves
// references.
//
// It knows neither configs nor servers, caches nothing and prints nothing. No error of it
// holds a value.
package secrets
