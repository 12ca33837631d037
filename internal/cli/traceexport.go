package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/otlp"
)

// The forms of an export.
const (
	exportEvents = "jsonl"
	exportTree   = "json"
	exportSpans  = "otlp"
)

// exportFlags say what `trace export` writes, and where.
type exportFlags struct {
	format   string
	endpoint string
	headers  []string
	content  bool
}

func (a *app) traceExportCommand() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export ID",
		Short: "Write a request's events, or send them to a collector",
		Long: `Writes every event of a request, one a line in JSON, in the form that
--output-format stream-json prints; or with --format json the tree of its runs.

With --format otlp it makes OpenTelemetry spans of them, by the conventions for
generative AI, and posts them to a collector. Where that is, and with which
headers, is told by --endpoint and --header, else by OTEL_EXPORTER_OTLP_ENDPOINT and
OTEL_EXPORTER_OTLP_HEADERS, or their _TRACES_ variants. Without any of these, or
with --endpoint -, the spans are written as JSON. Prompts, replies, arguments and
results are left out unless --content asks for them.`,
		Example: `  synapse trace export last --format otlp --endpoint http://localhost:4318
  synapse trace export last --format json`,
		Args:              exactArgs("ID"),
		ValidArgsFunction: a.completeTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.withTrace(cmd.Context(), args[0], func(j trace.Journal, id string) error {
				return a.export(cmd.Context(), j, id, f)
			})
		},
	}
	c.Flags().StringVar(&f.format, "format", exportEvents, "`format`: jsonl (the events), json (the tree) or otlp (spans)")
	c.Flags().StringVar(&f.endpoint, "endpoint", "", "the collector's base `URL`; - writes to standard output")
	c.Flags().StringArrayVar(&f.headers, "header", nil, "a header for the collector, as `NAME=VALUE`; again for another")
	c.Flags().BoolVar(&f.content, "content", false, "spans with what models and tools were told and said")
	c.RegisterFlagCompletionFunc("format", oneOf(exportEvents, exportTree, exportSpans))
	return c
}

func (f *exportFlags) check() error {
	switch f.format {
	case exportSpans:
	case exportEvents, exportTree:
		if f.endpoint != "" || len(f.headers) > 0 || f.content {
			return usagef("--endpoint, --header and --content go with --format otlp")
		}
	default:
		return usagef("--format %q: want jsonl, json or otlp", f.format)
	}
	return nil
}

func (a *app) export(ctx context.Context, j trace.Journal, id string, f exportFlags) error {
	events := j.Events(ctx, trace.Query{Trace: id})
	switch f.format {
	case exportEvents:
		return trace.WriteJSONL(a.p.Stdout, events)
	case exportTree:
		tree, err := trace.Build(events)
		if err != nil {
			return err
		}
		return trace.WriteJSON(a.p.Stdout, tree)
	}
	client, err := a.collector(f)
	if err != nil {
		return err
	}
	opt := otlp.Options{Content: f.content, Version: readVersion().Version}
	spans, err := otlp.Spans(events, opt)
	if err != nil {
		return err
	}
	if client.Endpoint == "" {
		return otlp.Encode(a.p.Stdout, spans, opt)
	}
	if _, err := client.Send(ctx, spans, opt); err != nil {
		return err
	}
	fmt.Fprintf(a.p.Stderr, "synapse: sent %s to %s\n", count(int64(len(spans)), "span"), clean(client.Endpoint))
	return nil
}

// collector finds out where spans go. Only flags and the process's environment
// say so: a workspace's files can't send traces elsewhere.
func (a *app) collector(f exportFlags) (*otlp.Client, error) {
	var client otlp.Client
	var err error
	switch traces, base := a.p.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), a.p.env("OTEL_EXPORTER_OTLP_ENDPOINT"); {
	case f.endpoint == "-":
	case f.endpoint != "":
		if client.Endpoint, err = otlp.TracesURL(f.endpoint); err != nil {
			return nil, usagef("--endpoint: %v", err)
		}
	case traces != "": // this one is taken as it stands
		if _, err := otlp.TracesURL(traces); err != nil {
			return nil, configErrorf("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: %w", err)
		}
		client.Endpoint = traces
	case base != "":
		if client.Endpoint, err = otlp.TracesURL(base); err != nil {
			return nil, configErrorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
		}
	}
	client.Headers = http.Header{}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		headers, err := otlp.ParseHeaders(a.p.env(name))
		if err != nil {
			return nil, configErrorf("%s: %w", name, err)
		}
		for k, v := range headers {
			client.Headers[k] = v
		}
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " :\t\r\n") || strings.ContainsAny(value, "\r\n\x00") {
			return nil, usagef("--header: want NAME=VALUE")
		}
		client.Headers.Set(name, value)
	}
	return &client, nil
}

// configErrorf is an error in what the user has configured.
func configErrorf(format string, args ...any) error {
	return &codedError{code: exitConfig, err: fmt.Errorf(format, args...)}
}
