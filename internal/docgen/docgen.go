// Package docgen writes the parts of the documentation that are true because
// they are read off the program: tables of fields, settings and codes, the
// reference of commands, and whole example files. They stand between markers in
// pages that people write:
//
//	<!-- generated: settings -->
//	…
//	<!-- /generated -->
package docgen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// A Source writes what belongs between the markers of its name.
type Source func(argument string) (string, error)

// Sources returns what there is to generate, by the marker's first word. The
// commands are those of root; paths of files are below dir.
func Sources(root *cobra.Command, dir string) map[string]Source {
	fixed := func(write func() string) Source {
		return func(argument string) (string, error) {
			if argument != "" {
				return "", fmt.Errorf("%q: want nothing after the marker's name", argument)
			}
			return write(), nil
		}
	}
	return map[string]Source{
		"commands":    fixed(func() string { return commands(root) }),
		"flags":       fixed(func() string { return commonFlags(root) }),
		"fields":      fixed(fields),
		"diagnostics": fixed(diagnostics),
		"rules":       fixed(rules),
		"products":    fixed(products),
		"differences": fixed(differences),
		"settings":    fixed(keys),
		"variables":   fixed(providerVariables),
		"reasons":     fixed(reasons),
		"aliases":     fixed(aliases),
		"providers":   fixed(providers),
		"clouds":      fixed(clouds),
		"file":        func(path string) (string, error) { return file(dir, path) },
	}
}

const (
	markerBegin = "<!-- generated: "
	markerEnd   = "<!-- /generated -->"
)

// Fill returns a page with the parts between its markers written anew. Errors
// name the line.
func Fill(page []byte, sources map[string]Source) ([]byte, error) {
	var out strings.Builder
	open := 0 // the line of the marker that is open
	line := 0
	for text := range strings.Lines(string(page)) {
		line++
		mark := strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(mark, markerBegin):
			if open > 0 {
				return nil, fmt.Errorf("line %d: the marker on line %d has no end", line, open)
			}
			open = line
			name, ok := strings.CutSuffix(strings.TrimPrefix(mark, markerBegin), " -->")
			name, argument, _ := strings.Cut(name, " ")
			source := sources[name]
			if !ok || source == nil {
				return nil, fmt.Errorf("line %d: %s: there is nothing of that name to generate", line, mark)
			}
			made, err := source(argument)
			if err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", line, mark, err)
			}
			out.WriteString(text + strings.TrimRight(made, "\n") + "\n")
		case mark == markerEnd:
			if open == 0 {
				return nil, fmt.Errorf("line %d: an end without a marker", line)
			}
			open = 0
			out.WriteString(text)
		case open == 0:
			out.WriteString(text)
		}
	}
	if open > 0 {
		return nil, fmt.Errorf("the marker on line %d has no end", open)
	}
	return []byte(out.String()), nil
}

// file quotes a file of the repository as a block of code.
func file(dir, path string) (string, error) {
	if !filepath.IsLocal(path) {
		return "", fmt.Errorf("%q is no path below the repository", path)
	}
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
	if err != nil {
		return "", err
	}
	fence := "```"
	for strings.Contains(string(data), fence) {
		fence += "`"
	}
	return fence + strings.TrimPrefix(filepath.Ext(path), ".") + "\n" + strings.TrimRight(string(data), "\n") + "\n" + fence, nil
}

// table writes a Markdown table. A cell without a row that fills it is left out
// of no row: all have as many as the head.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			cells[i] = cell(c)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(head)
	b.WriteString(strings.Repeat("| --- ", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// cell makes text fit for one cell.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

// code sets text in the type of code, nothing for nothing.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}
