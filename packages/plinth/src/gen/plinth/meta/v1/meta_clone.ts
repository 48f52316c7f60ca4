export * from "@plinth/proto/gen/plinth/meta/v1/meta_clone.js";
