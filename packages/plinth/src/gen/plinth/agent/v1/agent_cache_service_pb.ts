export * from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
