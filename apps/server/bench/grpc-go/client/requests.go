package main

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	musicpb "plinth.dev/bench/build/gen/music/v1"
	pb "plinth.dev/bench/build/gen/plinth/resource/v1"
)

// listed is how many resources are in the default namespace, named r0, r1 and so on.
const listed = 1000

var artist = &pb.Type{Group: "music", GroupVersion: "v1", Kind: "Artist"}

func encode(message proto.Message) []byte {
	encoded, err := proto.Marshal(message)
	if err != nil {
		panic(err)
	}
	return encoded
}

func idOf(namespace, name string) *pb.ID {
	return &pb.ID{Name: name, Type: artist, Tenancy: tenancyOf(namespace)}
}

func tenancyOf(namespace string) *pb.Tenancy {
	return &pb.Tenancy{Partition: "default", Namespace: namespace}
}

func readRequest(turn int64) []byte {
	return encode(&pb.ReadRequest{Id: idOf("default", fmt.Sprintf("r%d", turn%listed))})
}

func listRequest(namespace string) []byte {
	return encode(&pb.ListRequest{Type: artist, Tenancy: tenancyOf(namespace)})
}

func watchRequest(namespace string) []byte {
	return encode(&pb.WatchListRequest{Type: artist, Tenancy: tenancyOf(namespace)})
}

// writeRequest writes content that differs from the stored one, if any.
func writeRequest(namespace, name string, turn int64, createOnly bool) []byte {
	data, err := anypb.New(&musicpb.Artist{Genre: fmt.Sprintf("jazz %d", turn)})
	if err != nil {
		panic(err)
	}
	return encode(&pb.WriteRequest{
		Resource:   &pb.Resource{Id: idOf(namespace, name), Data: data},
		CreateOnly: createOnly,
	})
}
