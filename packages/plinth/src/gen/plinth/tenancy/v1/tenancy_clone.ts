export * from "@plinth/proto/gen/plinth/tenancy/v1/tenancy_clone.js";
