export * from "@plinth/proto/gen/plinth/resource/v1/resource_clone.js";
