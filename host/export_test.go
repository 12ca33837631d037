package host

import (
	"time"

	"github.com/synapse-agents/synapse/run"
)

// FastRetries keeps a test from waiting for a server that is out.
func FastRetries(h *Host) { h.local.Retry = run.Retry{Attempts: 2, Base: time.Millisecond} }
