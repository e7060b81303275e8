// Package secrets stores secrets in the system keyring or a private file and resolves
// references.
//
// It caches nothing, and its errors never contain a value. It does not depend on configs
// or servers.
package secrets
