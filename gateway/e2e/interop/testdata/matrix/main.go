// The client and the server of the matrix with the official Go SDK.
//
//	matrix client SPEC.json
//	matrix server stdio|http legacy|modern|dual
//
// They do what client-v1.mjs, steps.mjs and server-v2.mjs do.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "client":
		return runClient(ctx, args[1])
	case len(args) == 3 && args[0] == "server":
		return runServer(ctx, args[1], args[2])
	}
	return fmt.Errorf("usage: matrix client SPEC.json | server stdio|http legacy|modern|dual")
}
