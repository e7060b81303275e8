//go:build !unix

package serve

func stayRunning() {}
