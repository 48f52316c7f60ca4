export * from "@plinth/proto/gen/plinth/schema/v1/annotations_clone.js";
