//go:build race

package agents_test

// raceDetector says that memory figures mean nothing.
const raceDetector = true
