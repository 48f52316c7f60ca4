export * from "@plinth/proto/gen/plinth/schema/v1/reference_service_clone.js";
