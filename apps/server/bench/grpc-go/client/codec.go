package main

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// rawCodec sends messages that are encoded already. Of those it receives, it finds out the kind of an event if that is
// the receiver, and decodes nothing else: the client shall cost little.
type rawCodec struct{}

// eventKind is the field of WatchEvent's oneof that an event has.
type eventKind protowire.Number

const (
	noEvent            eventKind = 0
	upsertEvent        eventKind = 1
	endOfSnapshotEvent eventKind = 3
)

// versionField is the only field of WatchEvent outside of the oneof. Some encoders put it first.
const versionField protowire.Number = 101

func (rawCodec) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(message.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, receiver any) error {
	if kind, ok := receiver.(*eventKind); ok {
		buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buffer.Free()
		*kind = kindOf(buffer.ReadOnlyData())
	}
	return nil
}

func kindOf(event []byte) eventKind {
	for len(event) > 0 {
		number, _, size := protowire.ConsumeField(event)
		if size < 0 {
			return noEvent
		}
		if number != versionField {
			return eventKind(number)
		}
		event = event[size:]
	}
	return noEvent
}

func (rawCodec) Name() string { return "proto" }
