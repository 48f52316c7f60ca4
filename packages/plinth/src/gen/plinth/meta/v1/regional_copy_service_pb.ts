export * from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
