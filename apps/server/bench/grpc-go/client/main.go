// Command client makes calls as fast as it can, or at a fixed rate. It reads commands from standard input and writes a result for each,
// one line of JSON each; see harness/load-client.ts.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
)

// command tells what to do; operations use the fields that they need.
type command struct {
	// Operation is a name of calls, or openWatches, closeWatches or fanOut.
	Operation   string `json:"operation"`
	Address     string `json:"address"`
	Token       string `json:"token"`
	Connections int    `json:"connections"`
	Callers     int    `json:"callers"`
	Count       int64  `json:"count"`
	Watches     int    `json:"watches"`
	// PerSecond is the rate at which calls are started; 0 if callers make one call after the other.
	PerSecond float64 `json:"perSecond"`
}

// result is what was done, or why it failed.
type result struct {
	Count   int64   `json:"count"`
	Seconds float64 `json:"seconds"`
	// P50 and P99 are latencies in microseconds, of calls at a fixed rate.
	P50   float64 `json:"p50Microseconds,omitempty"`
	P99   float64 `json:"p99Microseconds,omitempty"`
	Error string  `json:"error,omitempty"`
}

func execute(cmd command) (result, error) {
	if cmd.PerSecond > 0 {
		return runPaced(cmd)
	}
	switch cmd.Operation {
	case "openWatches":
		return openWatches(cmd)
	case "closeWatches":
		return closeWatches()
	case "fanOut":
		return fanOut(cmd)
	default:
		return run(cmd)
	}
}

func main() {
	commands := bufio.NewScanner(os.Stdin)
	results := json.NewEncoder(os.Stdout)
	for commands.Scan() {
		var next command
		if err := json.Unmarshal(commands.Bytes(), &next); err != nil {
			log.Fatal(err)
		}
		done, err := execute(next)
		if err != nil {
			done = result{Error: err.Error()}
		}
		if err := results.Encode(done); err != nil {
			log.Fatal(err)
		}
	}
}
