export * from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_clone.js";
