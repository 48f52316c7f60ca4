export * from "@plinth/proto/gen/plinth/peering/v1/peering_service_clone.js";
