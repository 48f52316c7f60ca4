package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// runPaced starts calls at a fixed rate, however long they take. A latency is measured from the time at which the call
// was due, so that it includes all waiting.
func runPaced(cmd command) (result, error) {
	paced, ok := calls[cmd.Operation]
	if !ok {
		return result{}, fmt.Errorf("no such operation: %s", cmd.Operation)
	}
	server, err := targetOf(cmd)
	if err != nil {
		return result{}, err
	}
	latencies := make([]time.Duration, cmd.Count)
	failures := make(chan error, cmd.Count)
	interval := time.Duration(float64(time.Second) / cmd.PerSecond)
	var group sync.WaitGroup
	start := time.Now()
	for index := range latencies {
		due := start.Add(time.Duration(index) * interval)
		time.Sleep(time.Until(due))
		connection := server.connectionOf(index)
		group.Go(func() {
			if err := paced(server.ctx, connection, turns.Add(1)); err != nil {
				failures <- err
			}
			latencies[index] = time.Since(due)
		})
	}
	group.Wait()
	took := time.Since(start).Seconds()
	select {
	case err := <-failures:
		return result{}, fmt.Errorf("%s failed: %w", cmd.Operation, err)
	default:
	}
	slices.Sort(latencies)
	at := func(share float64) float64 {
		return float64(latencies[int(share*float64(len(latencies)-1))]) / float64(time.Microsecond)
	}
	return result{Count: cmd.Count, Seconds: took, P50: at(0.5), P99: at(0.99)}, nil
}
