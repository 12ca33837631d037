package tui

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// focus says which part of the screen the keys go to.
type focus int

const (
	focusInput focus = iota
	focusConversation
	focusTree
)

// A Model is the whole screen. Its parts hold state and draw; none of them does
// any input or output, which happens in commands that the model hands back.
type Model struct {
	opt    Options
	ctx    context.Context // of the program: requests end with it
	th     *theme
	choice string // the theme's name, or auto
	light  bool   // the terminal's background
	pal    colorprofile.Profile

	w, h  int
	frame int
	now   time.Time

	ledger  *ledger
	pump    *pump
	conv    Conversation
	said    bool // something was said in it
	status  Status
	agents  AgentList
	files   []string
	busy    bool
	stop    context.CancelFunc // of the request that goes on
	stopped bool               // the user has interrupted it

	input   *editor
	history history
	queue   []string
	popup   *popup
	focus   focus
	tree    tree
	pages   []page
	dialog  *dialog
	open    bool // everything is shown whole
	flash   string
	flashAt int // counts flashes, so that an old one's end does not take a new one away
	quit    int // the flash that says that Ctrl+C quits

	requests sync.WaitGroup // that go on in commands
}

// A page covers the conversation until it is closed.
type page interface {
	title() string
	// hints are the keys, in pairs of key and meaning.
	hints(m *Model) []string
	// key takes a key. It returns a command, and false to be closed.
	key(m *Model, k tea.KeyPressMsg) (tea.Cmd, bool)
	// draw returns at most rows lines, and where the cursor is if it shows one.
	draw(m *Model, columns, rows int) ([]string, *tea.Cursor)
}

// A receiver is a page that waits for what a command brings.
type receiver interface {
	receive(m *Model, msg tea.Msg) tea.Cmd
}

// New returns the screen of a conversation. The context ends its requests.
func New(ctx context.Context, opt Options) *Model {
	m := &Model{
		opt: opt, conv: opt.Conversation, ctx: ctx, ledger: newLedger(), pump: newPump(), input: newEditor(), w: 80, h: 24, pal: colorprofile.TrueColor, quit: -1,
	}
	m.setTheme(opt.Theme)
	return m
}

// setTheme chooses a theme by its name; auto and unknown ones follow the
// terminal.
func (m *Model) setTheme(name string) {
	m.choice = name
	t := themeNamed(name)
	switch {
	case m.opt.NoColor || m.pal <= colorprofile.ASCII:
		t = monoTheme()
	case t != nil:
	case m.pal == colorprofile.ANSI:
		t = ansiTheme()
	case m.light:
		t = lightTheme()
	default:
		t = darkTheme()
	}
	if t == nil || m.th == nil || m.th.name != t.name {
		m.th = t
	}
}

// The messages that commands bring.
type (
	tick       time.Time
	statusMsg  Status
	agentsMsg  struct{ AgentList }
	filesMsg   []string
	historyMsg []string
	flashOver  int
	failure    struct{ err error }
	done       struct{ text string } // something the user wanted has been done
)

// tickTime is how often what moves by itself is drawn.
const tickTime = 100 * time.Millisecond

func (m *Model) ticking() tea.Cmd {
	return tea.Tick(tickTime, func(t time.Time) tea.Msg { return tick(t) })
}

// Init starts what runs for as long as the screen does.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(
		tea.RequestBackgroundColor, m.pump.wait(m.ctx), m.opt.Questions.wait(m.ctx), m.ticking(),
		m.loadStatus(), m.loadAgents(), m.loadFiles(), m.loadHistory(), m.loadTrust(), m.recall(m.conv),
	)
}

func (m *Model) loadStatus() tea.Cmd {
	if m.opt.Status == nil {
		return nil
	}
	return func() tea.Msg { return statusMsg(m.opt.Status(m.ctx)) }
}

func (m *Model) loadAgents() tea.Cmd {
	if m.opt.Agents == nil {
		return nil
	}
	return func() tea.Msg {
		l, err := m.opt.Agents.Agents(m.ctx)
		if err != nil {
			return failure{err}
		}
		return agentsMsg{l}
	}
}

func (m *Model) loadFiles() tea.Cmd {
	if m.opt.Files == nil {
		return nil
	}
	return func() tea.Msg {
		l, err := m.opt.Files.Files(m.ctx)
		if err != nil {
			return failure{err}
		}
		return filesMsg(l)
	}
}

func (m *Model) loadHistory() tea.Cmd {
	if m.opt.Memory == nil {
		return nil
	}
	return func() tea.Msg {
		l, err := m.opt.Memory.History(m.ctx)
		if err != nil {
			return failure{err}
		}
		return historyMsg(l)
	}
}

// Update takes a message in.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.light = !msg.IsDark()
		m.setTheme(m.choice)
	case tea.ColorProfileMsg:
		m.pal = msg.Profile
		m.setTheme(m.choice)
	case tick:
		m.now = time.Time(msg)
		m.frame++
		return m, m.ticking()
	case batch:
		return m, m.take(msg)
	case asked:
		return m, tea.Batch(m.ask(msg), m.opt.Questions.wait(m.ctx))
	case armed:
		m.dialog.arm(int(msg))
	case statusMsg:
		m.status = Status(msg)
		if len(m.ledger.conv.items) == 0 {
			m.welcome()
		}
	case agentsMsg:
		m.agents = msg.AgentList
		return m, m.deliver(msg)
	case untrustedMsg:
		m.push(&trustPage{held: msg})
	case pastMsg:
		return m, m.goOn(msg)
	case filesMsg:
		m.files = msg
	case historyMsg:
		m.history = history{entries: append([]string(msg), m.history.entries...)}
		m.history.at = len(m.history.entries)
	case flashOver:
		if int(msg) == m.flashAt {
			m.flash = ""
		}
		if int(msg) == m.quit {
			m.quit = -1
		}
	case failure:
		if errors.Is(msg.err, context.Canceled) {
			return m, nil
		}
		return m, tea.Batch(m.say(oneLine(msg.err.Error())), m.deliver(msg))
	case done:
		return m, tea.Batch(m.say(msg.text), m.loadStatus(), m.loadAgents(), m.deliver(msg))
	case tea.PasteMsg:
		return m, m.paste(msg.Content)
	case tea.MouseMsg:
		return m, m.mouse(msg)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	default:
		return m, m.deliver(msg)
	}
	return m, nil
}

// deliver hands a message to the pages that are open.
func (m *Model) deliver(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	for _, p := range m.pages {
		if r, ok := p.(receiver); ok {
			cmds = append(cmds, r.receive(m, msg))
		}
	}
	return tea.Batch(cmds...)
}

// say shows a word in the status line for a while.
func (m *Model) say(text string) tea.Cmd {
	m.flash = text
	m.flashAt++
	at := m.flashAt
	return tea.Tick(max(3*time.Second, time.Duration(len(text))*60*time.Millisecond), func(time.Time) tea.Msg { return flashOver(at) })
}

// take takes what has streamed in.
func (m *Model) take(b batch) tea.Cmd {
	for _, e := range b.events {
		m.ledger.apply(e)
		if e.Time.After(m.now) {
			m.now = e.Time
		}
	}
	cmds := []tea.Cmd{m.pump.wait(m.ctx)}
	if b.ended {
		cmds = append(cmds, m.ended(b.err))
	}
	return tea.Batch(cmds...)
}

// ended goes on after a request: with what the user has written meanwhile, unless
// they have interrupted it.
func (m *Model) ended(err error) tea.Cmd {
	stopped := m.stopped
	m.busy, m.stopped = false, false
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		m.notice("✗", (*theme).badStyle, foreign(err.Error()))
	}
	if len(m.queue) == 0 {
		return m.loadStatus()
	}
	if stopped || err != nil { // what was meant to follow may not be wanted any more
		text := strings.Join(m.queue, "\n\n")
		if !m.input.empty() {
			text += "\n\n" + m.input.value()
		}
		m.queue = nil
		m.input.set(text)
		return m.loadStatus()
	}
	next := m.queue[0]
	m.queue = m.queue[1:]
	return tea.Batch(m.send(next), m.loadStatus())
}

func (m *Model) notice(sign string, st func(*theme) style, text string) {
	m.ledger.conv.add(&item{kind: itemNotice, sign: sign, style: st, text: text})
}

// welcome is what an empty conversation shows.
func (m *Model) welcome() {
	m.notice("✦", (*theme).accentStyle, "Synapse · "+oneLine(m.status.Workspace))
	for _, n := range m.status.Notes {
		m.notice("!", (*theme).warnStyle, oneLine(n))
	}
	m.notice(" ", (*theme).faintStyle, "Say what to do. @ names an agent or a file, / lists the commands, Tab goes through the screen.")
}

func (t *theme) accentStyle() style { return t.accent }

// submit sends what the user has written, or lets it wait for the request that
// goes on.
func (m *Model) submit() tea.Cmd {
	text := strings.TrimSpace(m.input.value())
	if text == "" {
		return nil
	}
	if name, args, ok := commandLine(text); ok {
		m.input.set("")
		return m.command(name, args)
	}
	m.input.set("")
	m.input.pasted = nil
	m.history.add(text)
	var remember tea.Cmd
	if m.opt.Memory != nil {
		remember = func() tea.Msg {
			if err := m.opt.Memory.Remember(m.ctx, text); err != nil {
				return failure{err}
			}
			return nil
		}
	}
	if m.busy {
		m.queue = append(m.queue, text)
		return remember
	}
	return tea.Batch(m.send(text), remember)
}

// send starts a request.
func (m *Model) send(text string) tea.Cmd {
	m.ledger.conv.add(&item{kind: itemUser, text: foreign(text)})
	session := m.conv.Session
	return m.follow(func(ctx context.Context) Events { return session.Send(ctx, text) })
}

// follow shows what a request does.
func (m *Model) follow(request func(context.Context) Events) tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	m.busy, m.said, m.stop, m.stopped = true, true, cancel, false
	m.ledger.conv.free, m.ledger.conv.cursor = false, -1
	m.tree, m.ledger.main = tree{}, nil
	pump := m.pump
	return func() tea.Msg {
		m.requests.Add(1)
		defer m.requests.Done()
		for e, err := range request(ctx) {
			if err != nil {
				pump.end(err)
				return nil
			}
			pump.put(e)
		}
		pump.end(nil)
		return nil
	}
}

// interrupt stops the request that goes on.
func (m *Model) interrupt() tea.Cmd {
	if !m.busy || m.stopped {
		return nil
	}
	m.stopped = true
	m.stop()
	return m.say("interrupted")
}

// root is the main agent's run of the request that goes on or has just ended.
func (m *Model) root() *run {
	if m.ledger.main == nil {
		return &run{agent: m.status.Agent, calls: map[string]*item{}, script: m.ledger.conv}
	}
	return m.ledger.main
}

func (m *Model) look(columns int) look { return look{width: max(columns, 20), th: m.th, open: m.open} }

// push opens a page.
func (m *Model) push(p page) { m.pages = append(m.pages, p) }

var _ tea.Model = (*Model)(nil)
