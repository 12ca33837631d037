package agents

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
)

// The presets are files in the native format, like those of a user, so that
// the three that are written into the user's directory at the first start are
// byte for byte what is built in.
//
//go:embed builtin/*.md
var builtinFiles embed.FS

// Builtin returns the layer of the presets: researcher, tester, reviewer,
// general-purpose, explore and analyst.
func Builtin() Layer {
	layer := Layer{Kind: LayerBuiltin, Name: "built-in"}
	entries, err := fs.ReadDir(builtinFiles, "builtin")
	if err != nil {
		panic(fmt.Sprintf("agents: the embedded presets: %v", err)) // can't be: they are part of the program
	}
	for _, e := range entries {
		data, err := builtinFiles.ReadFile(path.Join("builtin", e.Name()))
		if err != nil {
			panic(fmt.Sprintf("agents: the embedded presets: %v", err))
		}
		d, diags := Parse("built-in:"+e.Name(), data, ParseOptions{Layer: LayerBuiltin})
		layer.Defs = append(layer.Defs, d)
		layer.Diagnostics = append(layer.Diagnostics, diags...)
	}
	return layer
}
