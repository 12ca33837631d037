package settings

import (
	"encoding/json"
	"fmt"
)

// Layer names where a value can come from.
type Layer string

// The layers, low to high.
const (
	LayerDefault     Layer = "default"
	LayerUser        Layer = "user"        // <home>/.synapse/settings.json
	LayerExecutable  Layer = "executable"  // <dir of the binary>/.synapse/settings.json
	LayerProject     Layer = "project"     // <workspace>/.synapse/settings.json
	LayerDotenv      Layer = "dotenv"      // <workspace>/.env
	LayerEnvironment Layer = "environment" // the process's environment
	LayerFlag        Layer = "flag"
)

// An Origin says where a value was set.
type Origin struct {
	Layer Layer  `json:"layer"`
	Path  string `json:"path,omitempty"` // the file, as an absolute path
	Line  int    `json:"line,omitempty"` // from 1; 0 when unknown
	Var   string `json:"var,omitempty"`  // the environment variable, or the flag with its dashes
}

// String returns the origin in words, such as
// "user settings (~/.synapse/settings.json:4)", "environment AGENT_READONLY" or
// "flag --readonly".
func (o Origin) String() string {
	switch o.Layer {
	case LayerDefault, "":
		return "default"
	case LayerUser:
		return "user settings (" + o.place("~/.synapse/settings.json") + ")"
	case LayerExecutable:
		return "executable settings (" + o.place(o.Path) + ")"
	case LayerProject:
		return "project settings (" + o.place(".synapse/settings.json") + ")"
	case LayerDotenv:
		return "workspace " + o.place(".env") + " " + o.Var
	}
	return string(o.Layer) + " " + o.Var
}

func (o Origin) place(file string) string {
	if o.Line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, o.Line)
}

// A Value is a setting with where it was set.
type Value[T any] struct {
	V      T
	Origin Origin
}

// IsSet reports whether a layer above the defaults gave the value.
func (v Value[T]) IsSet() bool {
	return v.Origin.Layer != "" && v.Origin.Layer != LayerDefault
}

// A Row is one line of "config show": a key, its value without secrets, and
// where that was set. A key whose value was gathered from several places has a
// row for each of them.
type Row struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin Origin `json:"origin"`
}

// Text returns the value for a terminal: a string as it is, anything else as
// JSON.
func (r Row) Text() string {
	data, err := json.Marshal(r.Value)
	if err != nil {
		return err.Error()
	}
	var s string
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	return string(data)
}
