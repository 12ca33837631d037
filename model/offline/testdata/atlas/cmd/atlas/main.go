// Command atlas prints the shortest way between two places.
package main

import (
	"fmt"
	"os"
	"strings"

	"example.com/atlas/route"
	"example.com/atlas/store"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: atlas FROM TO")
		os.Exit(2)
	}
	way, err := route.Shortest(load(), os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(way, " > "))
}

// load returns the built-in map.
func load() *store.Map {
	var m store.Map
	// TODO: read the map from a file
	for _, r := range []store.Road{{"home", "shop", 3}, {"shop", "lake", 4}, {"home", "lake", 9}} {
		if err := m.Add(r); err != nil {
			panic(err)
		}
	}
	return &m
}
