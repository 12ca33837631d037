package agents

import (
	"encoding/json"
	"errors"
	"path"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// readSchema reads output_schema: a schema, or the path of a file with one. A
// path goes to [ParseOptions.ReadFile], which decides what may be read.
func readSchema(r *reader, n *yaml.Node) error {
	const hint = "write a JSON Schema, or the path of one beside this file"
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Tag != tagUnreadable {
		text := trim(n.Value)
		if strings.HasPrefix(text, "{") {
			return r.setSchema(n, []byte(text), "")
		}
		file, ok := relativePath(text)
		switch {
		case text == "":
			return r.bad(n, hint, "is empty")
		case !ok:
			return r.bad(n, hint, "is the absolute path %q", shorten(text, 60))
		case r.opt.ReadFile == nil:
			return r.bad(n, "write the schema into the field", "is the path %q, and no files are read here", shorten(text, 60))
		}
		data, err := r.opt.ReadFile(file)
		if err != nil {
			return r.bad(n, hint, "is the path %q: %v", shorten(text, 60), err)
		}
		return r.setSchema(n, data, text)
	}
	if n.Kind != yaml.MappingNode {
		return r.bad(n, hint, "is %s", kindOf(n))
	}
	text, err := r.jsonText(n)
	if err != nil {
		return r.bad(n, hint, "%v", err)
	}
	return r.setSchema(n, text, "")
}

// relativePath cleans a path, with slashes, and reports whether it is relative.
func relativePath(text string) (string, bool) {
	file := path.Clean(strings.ReplaceAll(text, `\`, "/"))
	return file, !path.IsAbs(file) && !(len(file) > 1 && file[1] == ':') && !strings.HasPrefix(file, "~")
}

// setSchema checks a schema's text and keeps it. The file is for messages.
func (r *reader) setSchema(n *yaml.Node, data []byte, file string) error {
	const hint = "see json-schema.org; the result of the agent is checked against it"
	where := ""
	if file != "" {
		where = " in " + shorten(file, 60)
	}
	root, err := parseJSONTree(data)
	if err != nil {
		var e *jsonError
		if errors.As(err, &e) {
			line, col := position(data, int(e.offset))
			return r.bad(n, hint, "is not valid JSON%s, line %d column %d: %v", where, line, col, err)
		}
		return r.bad(n, hint, "is not valid JSON%s: %v", where, err)
	}
	text, err := r.jsonText(root)
	if err != nil {
		return r.bad(n, hint, "%v%s", err, where)
	}
	if root.Kind != yaml.MappingNode {
		return r.bad(n, hint, "is not a JSON object%s", where)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return r.bad(n, hint, "is no JSON Schema%s: %v", where, err)
	}
	if _, err := s.Resolve(nil); err != nil {
		return r.bad(n, hint, "is no JSON Schema%s: %v", where, err)
	}
	r.d.OutputSchema = text
	return nil
}
