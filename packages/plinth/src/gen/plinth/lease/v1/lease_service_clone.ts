export * from "@plinth/proto/gen/plinth/lease/v1/lease_service_clone.js";
