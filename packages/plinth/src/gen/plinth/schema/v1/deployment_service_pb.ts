export * from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
