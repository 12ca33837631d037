package tool

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed ls.md
var lsWords string

//go:embed glob.md
var globWords string

//go:embed grep.md
var grepWords string

// LibraryTools returns ls, glob and grep: find_files, search_files and the
// listing of read_file under the names that other agent frameworks use. They
// are for programs that embed this package and whose agents know those names;
// the application never offers them, since two tools for one thing make a model
// choose where there is nothing to choose.
func (w *Workspace) LibraryTools() []synapse.Tool {
	tools := []synapse.Tool{
		must(New("ls", lsWords, w.runLs)),
		must(New("glob", globWords, w.runFindFiles)),
		must(New("grep", grepWords, w.runSearchFiles)),
	}
	for i := range tools {
		tools[i].ReadOnly, tools[i].Parallel = true, true
		tools[i].Subject = policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}}
	}
	return tools
}

type lsArgs struct {
	Path string `json:"path,omitempty" jsonschema:"default /"`
}

func (w *Workspace) runLs(ctx context.Context, in *synapse.Invocation, args lsArgs) (*synapse.ToolResult, error) {
	p, err := w.resolve(in, args.Path)
	if err != nil {
		return nil, err
	}
	info, err := p.stat()
	if err != nil {
		return nil, missing(ctx, in, p, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file of %s; read_file reads it", p.show(), bytesText(info.Size()))
	}
	list, err := p.listing(in)
	if err != nil {
		return nil, err
	}
	return &synapse.ToolResult{Text: list, Details: details(readFileDetails{Path: p.name})}, nil
}
