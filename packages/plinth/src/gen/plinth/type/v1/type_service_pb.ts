export * from "@plinth/proto/gen/plinth/type/v1/type_service_pb.js";
