package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

// The events of the watched namespace are fanned out. Each of its resources, w0 and so on, has a writer.
const (
	watched = "watched"
	writers = 16
)

// opening is how many watches are opened at the same time.
const opening = 100

var watchStream = grpc.StreamDesc{ServerStreams: true}

// openWatch returns after the end of the snapshot, and fails if the snapshot has another size.
func openWatch(
	ctx context.Context, connection *grpc.ClientConn, namespace string, size int,
) (grpc.ClientStream, error) {
	stream, err := connection.NewStream(ctx, &watchStream, service+"WatchList")
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(watchRequest(namespace)); err != nil {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	upserts := 0
	for {
		var kind eventKind
		if err := stream.RecvMsg(&kind); err != nil {
			return nil, err
		}
		switch kind {
		case upsertEvent:
			upserts++
		case endOfSnapshotEvent:
			if upserts != size {
				return nil, fmt.Errorf("the snapshot has %d resources instead of %d", upserts, size)
			}
			return stream, nil
		}
	}
}

// watchSet has watches of the watched namespace.
type watchSet struct {
	count  int
	ctx    context.Context
	cancel context.CancelFunc
	// failed has the first failure.
	failed chan error
	// awaited is how many events are still to be received; the last one is signalled on complete.
	awaited  atomic.Int64
	complete chan struct{}
}

// watches are those that are open.
var watches *watchSet

// openWatches opens further watches, which stay open until closeWatches.
func openWatches(cmd command) (result, error) {
	server, err := targetOf(cmd)
	if err != nil {
		return result{}, err
	}
	if watches == nil {
		watches = &watchSet{failed: make(chan error, 1), complete: make(chan struct{}, 1)}
		watches.ctx, watches.cancel = context.WithCancel(server.ctx)
	}
	start := time.Now()
	for first := 0; first < cmd.Watches; first += opening {
		count := min(opening, cmd.Watches-first)
		opened := make(chan error, count)
		for index := range count {
			go watches.open(server.connectionOf(first+index), opened)
		}
		for range count {
			if err := <-opened; err != nil {
				watches.cancel()
				return result{}, fmt.Errorf("could not open a watch: %w", err)
			}
		}
	}
	watches.count += cmd.Watches
	return result{Count: int64(cmd.Watches), Seconds: time.Since(start).Seconds()}, nil
}

func closeWatches() (result, error) {
	watches.cancel()
	closed := result{Count: int64(watches.count)}
	watches = nil
	return closed, nil
}

// open follows a watch until it ends. It reports whether the watch was opened.
func (w *watchSet) open(connection *grpc.ClientConn, opened chan<- error) {
	stream, err := openWatch(w.ctx, connection, watched, writers)
	opened <- err
	for err == nil {
		var kind eventKind
		if err = stream.RecvMsg(&kind); err != nil && w.ctx.Err() == nil {
			select {
			case w.failed <- err:
			default:
			}
		}
		if err == nil && kind == upsertEvent && w.awaited.Add(-1) == 0 {
			w.complete <- struct{}{}
		}
	}
}

// fanOut lets all writers update their resource, and waits until all watches have received all of these updates, again
// and again. It counts the received events.
func fanOut(cmd command) (result, error) {
	server, err := targetOf(cmd)
	if err != nil {
		return result{}, err
	}
	events := int64(writers * watches.count)
	start := time.Now()
	for range cmd.Count {
		watches.awaited.Store(events)
		written := make(chan error, writers)
		for writer := range writers {
			go func() {
				request := writeRequest(watched, fmt.Sprintf("w%d", writer), turns.Add(1), false)
				written <- invoke(server.ctx, server.connectionOf(writer), "Write", request)
			}()
		}
		for range writers {
			if err := <-written; err != nil {
				return result{}, fmt.Errorf("an update failed: %w", err)
			}
		}
		select {
		case <-watches.complete:
		case err := <-watches.failed:
			return result{}, fmt.Errorf("a watch failed: %w", err)
		case <-time.After(time.Minute):
			return result{}, fmt.Errorf("%d events were not received", watches.awaited.Load())
		}
	}
	return result{Count: cmd.Count * events, Seconds: time.Since(start).Seconds()}, nil
}
