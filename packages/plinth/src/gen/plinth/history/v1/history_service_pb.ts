export * from "@plinth/proto/gen/plinth/history/v1/history_service_pb.js";
