export * from "@plinth/proto/gen/plinth/resource/v1/annotations_clone.js";
