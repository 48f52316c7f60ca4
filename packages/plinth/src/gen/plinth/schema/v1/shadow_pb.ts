export * from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
