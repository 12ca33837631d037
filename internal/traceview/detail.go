package traceview

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/synapse-agents/synapse"
)

// Bounds of what the page shows of one run.
const (
	maxEntries = 600
	maxText    = 64 << 10 // bytes of one entry
)

// A detail is what a run was told and said.
type detail struct {
	Entries []*entry `json:"entries"`
	Cut     string   `json:"cut,omitempty"` // what is left out, and where it is
}

// An entry is one thing in a run's history.
type entry struct {
	Title string `json:"title"`
	Text  string `json:"text"`
	Kind  string `json:"kind"`
	Open  bool   `json:"open"`
	Child string `json:"child,omitempty"` // the run that it started
}

// detail returns the history of a run, nil if there is no such run.
func (r *reader) detail(run string) *detail {
	r.mu.Lock()
	events := r.events
	r.mu.Unlock()
	d := &detail{Entries: []*entry{}}
	var calls map[string]*entry
	found := false
	for _, e := range events {
		if e.Run != run {
			continue
		}
		found = true
		if len(d.Entries) >= maxEntries {
			d.Cut = fmt.Sprintf("Only the first %d entries are shown; `synapse trace export %s` has all.", maxEntries, e.Trace)
			break
		}
		switch b := e.Body.(type) {
		case *synapse.RunStarted:
			calls = map[string]*entry{}
			if b.Spec != nil {
				d.add("system prompt", b.Spec.System, "system", false)
			}
			for i, m := range b.Input {
				title := string(m.Role)
				if i == len(b.Input)-1 {
					title = "prompt"
				}
				d.add(title, said(m), "prompt", i == len(b.Input)-1)
			}
		case *synapse.ModelRequested:
			for _, m := range b.Added {
				d.add("added for turn "+fmt.Sprint(b.Turn), said(m), "prompt", false)
			}
		case *synapse.ModelReplied:
			for _, p := range b.Message.Parts {
				switch {
				case p.Kind == synapse.PartReasoning:
					d.add("reasoning", p.Text, "reasoning", false)
				case p.Kind == synapse.PartText:
					d.add(fmt.Sprintf("reply of turn %d", b.Turn), p.Text, "reply", true)
				case p.Call != nil && calls != nil:
					calls[p.Call.ID] = d.add("call "+p.Call.Name, p.Call.Args, "call", false)
				}
			}
		case *synapse.ToolStarted:
			if c := calls[b.Call.ID]; c != nil && b.Intent != "" {
				c.Title = "call " + b.Call.Name + ": " + b.Intent
			}
		case *synapse.ChildStarted:
			if c := calls[b.CallID]; c != nil {
				c.Child = b.Task
			}
		case *synapse.ToolFinished:
			r := b.Result
			title := "result"
			switch {
			case b.Denied != "":
				title = "denied: " + b.Denied
			case r.IsError:
				title = "error"
			}
			c := calls[r.CallID]
			if c == nil {
				c = d.add("call "+r.Name, "", "call", false)
			}
			c.Title += " → " + title
			c.Text = clip(c.Text + "\n\n" + title + ":\n" + r.Text)
			for _, m := range r.Media {
				c.Text += fmt.Sprintf("\n[%s %s, %d bytes]", m.Type, m.Name, len(m.Data))
			}
		case *synapse.ApprovalAsked:
			d.add("asks for "+b.Ask.Tool, b.Ask.Subject+"\n"+b.Ask.Reason, "ask", false)
		case *synapse.ApprovalAnswered:
			d.add(map[bool]string{true: "allowed", false: "refused"}[b.Answer.Allow], b.Answer.Reason, "ask", false)
		case *synapse.Warning:
			d.add("warning "+b.Code, b.Message, "warning", false)
		case *synapse.Retry:
			d.add(fmt.Sprintf("attempt %d failed", b.Attempt), b.Error, "retry", false)
		case *synapse.RunFinished:
			d.add("end: "+strings.ReplaceAll(string(b.Status), "_", " "), strings.TrimSpace(b.Cause+"\n\n"+b.Text), "end", false)
		}
	}
	if !found {
		return nil
	}
	return d
}

func (d *detail) add(title, text, kind string, open bool) *entry {
	e := &entry{Title: title, Text: clip(text), Kind: kind, Open: open}
	d.Entries = append(d.Entries, e)
	return e
}

// clip shortens a text that is too long for a page.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + fmt.Sprintf("\n… %d bytes more", len(text)-n)
}

// said is the text of a message, with what else it holds named.
func said(m synapse.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			fmt.Fprintf(&b, "[call %s] %s\n", p.Call.Name, p.Call.Args)
		case p.Result != nil:
			fmt.Fprintf(&b, "[result of %s] %s\n", p.Result.Name, p.Result.Text)
		case p.Media != nil:
			fmt.Fprintf(&b, "[%s %s, %d bytes]\n", p.Media.Type, p.Media.Name, len(p.Media.Data))
		default:
			b.WriteString(p.Text + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
