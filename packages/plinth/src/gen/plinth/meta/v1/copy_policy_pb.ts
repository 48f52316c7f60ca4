export * from "@plinth/proto/gen/plinth/meta/v1/copy_policy_pb.js";
