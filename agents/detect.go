package agents

import (
	"path"
	"path/filepath"
	"strings"
)

// Where our own definitions lie: in a directory below a workspace or the home
// directory, and in a file below a workspace.
const (
	nativeDir  = ".synapse/agents"
	nativeFile = "subagents/custom.json"
)

// ProductOf tells by a file's path whose definition it is: "claude" for
// ".claude/agents/x.md". It returns "" for a file that lies in no product's
// place, which is taken to be a native one.
func ProductOf(file string) string {
	if p, _ := locate(file); p != nil {
		return p.Name
	}
	return ""
}

// PlaceRoot is the directory to which the place of a file belongs: "w" for
// "w/.claude/agents/x.md" and for "w/.synapse/agents/x.md". It is "" for a file
// that lies in nobody's place, and may be "." or "/".
func PlaceRoot(file string) string {
	p, root := locate(file)
	if p == nil {
		slashed := "/" + strings.TrimPrefix(filepath.ToSlash(file), "/")
		if before, ok := strings.CutSuffix(slashed, "/"+nativeFile); ok {
			return rootOf(file, before)
		}
		i := strings.LastIndex(strings.ToLower(slashed), "/"+nativeDir+"/")
		if i < 0 {
			return ""
		}
		root = rootOf(file, slashed[:i])
	}
	return root
}

// rootOf names the directory that holds a place: what stands before it in the
// file's path.
func rootOf(file, before string) string {
	switch {
	case before == "" && strings.HasPrefix(filepath.ToSlash(file), "/"):
		return "/"
	case before == "":
		return "."
	case strings.HasPrefix(filepath.ToSlash(file), "/"):
		return before
	}
	return strings.TrimPrefix(before, "/")
}

// PlaceDir is the directory, with slashes, in which files of a product belong
// below the home directory ([LayerHome]) or a workspace ([LayerWorkspace]);
// with [Native], in which ours do. It is "" for what is no product.
func PlaceDir(product string, level LayerKind) string {
	if product == Native || product == "" {
		return nativeDir
	}
	if p := findProduct(product); p != nil {
		for _, place := range p.Places {
			if place.Level == level && !place.isFile() {
				return place.Path
			}
		}
	}
	return ""
}

// PathInPlace is a file's path, with slashes, below the place that it lies in,
// and its name alone where it lies in none.
func PathInPlace(file string) string {
	slashed := filepath.ToSlash(file)
	if p, root := locate(file); p != nil && root != "" {
		if name := p.pathName(file); name != "" {
			return name + path.Ext(slashed)
		}
	}
	if i := strings.LastIndex("/"+slashed, "/"+nativeDir+"/"); i >= 0 {
		return slashed[i+len(nativeDir)+1:]
	}
	return path.Base(slashed)
}

// isOneOfDefinitions reports whether a file that is no Markdown is one of definitions
// by where it lies.
func isOneOfDefinitions(file string) bool {
	p, _ := locate(file)
	return p != nil || strings.HasSuffix("/"+filepath.ToSlash(file), "/"+nativeFile)
}

// locate finds the product in whose place a file lies, and the directory that
// holds the place. A file that is a product's by its ending alone has no such
// directory.
func locate(file string) (p *product, root string) {
	clean := "/" + strings.TrimPrefix(path.Clean(strings.ReplaceAll(file, `\`, "/")), "/")
	lower := strings.ToLower(clean)
	at := -1
	for _, q := range products {
		for _, place := range q.Places {
			dir := "/" + place.Path
			switch i := strings.LastIndex(lower, dir); {
			case i < 0:
			case place.isFile():
				if i+len(dir) == len(lower) {
					return q, rootOf(file, clean[:i])
				}
			case i > at && strings.HasPrefix(lower[i+len(dir):], "/") && q.reads(lower):
				p, at = q, i
			}
		}
	}
	if p != nil {
		return p, rootOf(file, clean[:at])
	}
	for _, q := range products {
		if q.Suffix != "" && strings.HasSuffix(lower, q.Suffix) {
			return q, ""
		}
	}
	return nil, ""
}

// Detect says how to read a file that is known by its path alone: as the
// product's in whose place it lies ([ProductOf]), and TOML as that of the
// product which has such files. A file of a product that is not known here, one
// below a directory whose name begins with a dot, is a native file that may go
// by its own name.
func Detect(file string) (origin string, stemName bool) {
	if p, _ := locate(file); p != nil {
		return p.Name, true
	}
	for _, p := range products {
		if p.isTOML() && p.reads(file) {
			return p.Name, true
		}
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", false
	}
	for dir := filepath.Dir(abs); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if name := filepath.Base(dir); strings.HasPrefix(name, ".") {
			return "", name != path.Dir(nativeDir)
		}
	}
	return "", false
}
