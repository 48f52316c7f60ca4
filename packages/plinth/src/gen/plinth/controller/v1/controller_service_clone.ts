export * from "@plinth/proto/gen/plinth/controller/v1/controller_service_clone.js";
