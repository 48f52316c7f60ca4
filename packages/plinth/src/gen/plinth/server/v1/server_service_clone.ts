export * from "@plinth/proto/gen/plinth/server/v1/server_service_clone.js";
