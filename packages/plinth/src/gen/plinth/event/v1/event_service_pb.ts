export * from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
