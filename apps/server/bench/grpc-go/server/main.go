// Command server serves the resource service with grpc-go and a map: what the calls cost without a store, tokens,
// limits, metrics or audit. It prints its address.
package main

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "plinth.dev/bench/build/gen/plinth/resource/v1"
)

type service struct {
	pb.UnimplementedResourceServiceServer
	store *store
}

func (s *service) Read(_ context.Context, request *pb.ReadRequest) (*pb.ReadResponse, error) {
	resource := s.store.read(request.GetId())
	if resource == nil {
		return nil, status.Errorf(codes.NotFound, "%s does not exist", request.GetId().GetName())
	}
	return &pb.ReadResponse{Resource: resource}, nil
}

func (s *service) Write(_ context.Context, request *pb.WriteRequest) (*pb.WriteResponse, error) {
	if request.GetResource().GetId() == nil {
		return nil, status.Error(codes.InvalidArgument, "the resource has no ID")
	}
	resource, err := s.store.write(request.GetResource(), request.GetCreateOnly())
	if err != nil {
		return nil, err
	}
	return &pb.WriteResponse{Resource: resource}, nil
}

func (s *service) List(_ context.Context, request *pb.ListRequest) (*pb.ListResponse, error) {
	resources, version := s.store.list(keyOf(request.GetType(), request.GetTenancy()))
	return &pb.ListResponse{Resources: resources, Version: version}, nil
}

func (s *service) WatchList(
	request *pb.WatchListRequest,
	stream grpc.ServerStreamingServer[pb.WatchEvent],
) error {
	key := keyOf(request.GetType(), request.GetTenancy())
	added, snapshot, version := s.store.watch(key)
	defer s.store.unwatch(key, added)
	for _, resource := range snapshot {
		upsert := &pb.WatchEvent{
			Event: &pb.WatchEvent_Upsert_{Upsert: &pb.WatchEvent_Upsert{Resource: resource}},
		}
		if err := stream.Send(upsert); err != nil {
			return err
		}
	}
	end := &pb.WatchEvent{
		Event:   &pb.WatchEvent_EndOfSnapshot_{EndOfSnapshot: &pb.WatchEvent_EndOfSnapshot{}},
		Version: version,
	}
	if err := stream.Send(end); err != nil {
		return err
	}
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case event, ok := <-added.events:
			if !ok {
				return status.Error(codes.ResourceExhausted, "the watcher has not kept up")
			}
			if err := stream.Send(event); err != nil {
				return err
			}
		}
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterResourceServiceServer(server, &service{store: newStore()})
	fmt.Printf("http://%s\n", listener.Addr())
	log.Fatal(server.Serve(listener))
}
