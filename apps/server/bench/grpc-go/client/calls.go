package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

const service = "/plinth.resource.v1.ResourceService/"

// call makes one call and waits for its end.
type call func(ctx context.Context, connection *grpc.ClientConn, turn int64) error

// calls are the operations that callers repeat.
var calls = map[string]call{
	"read": func(ctx context.Context, connection *grpc.ClientConn, turn int64) error {
		return invoke(ctx, connection, "Read", readRequest(turn))
	},
	"create": func(ctx context.Context, connection *grpc.ClientConn, turn int64) error {
		name := fmt.Sprintf("c%d", turn)
		return invoke(ctx, connection, "Write", writeRequest("created", name, turn, true))
	},
	"update": func(ctx context.Context, connection *grpc.ClientConn, turn int64) error {
		name := fmt.Sprintf("r%d", turn%listed)
		return invoke(ctx, connection, "Write", writeRequest("default", name, turn, false))
	},
	"list": func(ctx context.Context, connection *grpc.ClientConn, _ int64) error {
		return invoke(ctx, connection, "List", listRequest("default"))
	},
	"snapshot": func(ctx context.Context, connection *grpc.ClientConn, _ int64) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		_, err := openWatch(ctx, connection, "default", listed)
		return err
	},
}

// turns numbers all calls, so that names of created resources are never used twice.
var turns atomic.Int64

func invoke(ctx context.Context, connection *grpc.ClientConn, method string, request []byte) error {
	return connection.Invoke(ctx, service+method, request, nil)
}

// target is a server, and the connections to it that calls are spread over.
type target struct {
	ctx         context.Context
	connections []*grpc.ClientConn
}

func (t *target) connectionOf(index int) *grpc.ClientConn {
	return t.connections[index%len(t.connections)]
}

var targets = map[string]*target{}

// targetOf returns the connections that an earlier command has used, if any.
func targetOf(cmd command) (*target, error) {
	name := fmt.Sprintf("%s %d", cmd.Address, cmd.Connections)
	if found, ok := targets[name]; ok {
		return found, nil
	}
	created := &target{
		ctx: metadata.AppendToOutgoingContext(
			context.Background(), "authorization", "Bearer "+cmd.Token,
		),
	}
	for range cmd.Connections {
		connection, err := grpc.NewClient(
			"passthrough:///"+cmd.Address,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})),
		)
		if err != nil {
			return nil, err
		}
		created.connections = append(created.connections, connection)
	}
	targets[name] = created
	return created, nil
}

// run makes a number of calls, each caller one after the other.
func run(cmd command) (result, error) {
	repeated, ok := calls[cmd.Operation]
	if !ok {
		return result{}, fmt.Errorf("no such operation: %s", cmd.Operation)
	}
	server, err := targetOf(cmd)
	if err != nil {
		return result{}, err
	}
	var started atomic.Int64
	var group sync.WaitGroup
	failures := make(chan error, cmd.Callers)
	start := time.Now()
	for caller := range cmd.Callers {
		connection := server.connectionOf(caller)
		group.Go(func() {
			for started.Add(1) <= cmd.Count {
				if err := repeated(server.ctx, connection, turns.Add(1)); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Wait()
	took := time.Since(start).Seconds()
	select {
	case err := <-failures:
		return result{}, fmt.Errorf("%s failed: %w", cmd.Operation, err)
	default:
		return result{Count: cmd.Count, Seconds: took}, nil
	}
}
