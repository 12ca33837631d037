package run

import (
	"context"
	"sync"
)

// A throttle bounds the requests in flight to one provider. It halves when the
// provider says 429 and creeps back with every success, so that a small quota
// slows a fan-out down instead of breaking it (additive increase,
// multiplicative decrease, as TCP does it).
type throttle struct {
	mu       sync.Mutex
	limit    float64
	most     float64
	inflight int
	waiting  []chan struct{}
	epoch    int // of the last halving; requests started before it don't halve again
}

func (l *Local) throttle(provider string) *throttle {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.throttles[provider]
	if t == nil {
		most := float64(l.MaxParallel)
		if most <= 0 {
			most = 64
		}
		t = &throttle{limit: most, most: most}
		if l.throttles == nil {
			l.throttles = map[string]*throttle{}
		}
		l.throttles[provider] = t
	}
	return t
}

// acquire waits for a place and returns the epoch to give back.
func (t *throttle) acquire(ctx context.Context) (int, error) {
	t.mu.Lock()
	if t.inflight < int(t.limit) && len(t.waiting) == 0 {
		t.inflight++
		epoch := t.epoch
		t.mu.Unlock()
		return epoch, nil
	}
	turn := make(chan struct{})
	t.waiting = append(t.waiting, turn)
	t.mu.Unlock()
	select {
	case <-turn: // the place is ours
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.epoch, nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		for i, w := range t.waiting {
			if w == turn {
				t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
				return 0, endOf(ctx)
			}
		}
		t.inflight-- // the place came at the same moment: pass it on
		t.admit()
		return 0, endOf(ctx)
	}
}

// release gives a place back and learns from how the request went.
func (t *throttle) release(epoch int, limited, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inflight--
	switch {
	case limited && epoch == t.epoch:
		t.limit = max(1, t.limit/2)
		t.epoch++
	case ok:
		t.limit = min(t.most, t.limit+1/t.limit)
	}
	t.admit()
}

// admit hands free places to those who wait, first come first served.
func (t *throttle) admit() {
	for t.inflight < int(t.limit) && len(t.waiting) > 0 {
		t.inflight++
		close(t.waiting[0])
		t.waiting = t.waiting[1:]
	}
}
