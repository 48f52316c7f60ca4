export * from "@plinth/proto/gen/plinth/cluster/v1/cluster_service_clone.js";
